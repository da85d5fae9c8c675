"""The picture of each public function, by what kind of function it is; numbers in it are what the function gives."""

import inspect

import numpy as np

import nbkernels

from ..dispatch import keys
from ..meta import MODES
from ..operations import DIVISOR, ELEMENTWISE, PART, TEST
from ..plots import vector

# Arrays of the functions that are drawn as shapes, by the letters of their sizes.
SHAPES = {
    "addmm": "mn mk kn", "mm": "mk kn", "addmm_activation": "mn mk kn", "bmm": "bmk bkn", "baddbmm": "bmn bmk bkn",
    "addbmm": "mn bmk bkn", "mv": "mk k", "addmv": "m mk k", "outer": "m n", "addr": "mn m n", "dot": "k k",
    "vdot": "k k", "matmul": "mk kn", "linear": "mk nk n", "sum_to": "mn", "vecdot": "mk k", "tensordot": "mbk bkn",
    "einsum": "bmk kn", "linear_q": "mk nk", "matrix_transpose": "bmn",
}  # fmt: skip
SIZES = {"b": 3, "m": 4, "k": 7, "n": 5}
# How those are called that take more than arrays.
CALLS = {
    "sum_to": lambda x: nbkernels.sum_to(x, (SIZES["n"],)),
    "einsum": lambda a, b: nbkernels.einsum("bmk,kn->mnb", a, b),
    "linear_q": lambda x, weight: nbkernels.linear_q(x, nbkernels.quantize(weight)),
}

XS = np.linspace(-4, 4, 481)  # no whole number is beside another one: steps are seen
SECOND = (-2.0, -0.5, 0.5, 2.0)  # other operands of the curves
WHOLE = (-1, 0, 1, 2)  # of ldexp, whose other is an integer
TRUTH = np.array([False, False, True, True]), np.array([False, True, False, True])
BITS = np.array([0b00110101, 0b01011100], np.uint8)
SHIFTED = np.array([0b00110101, 2], np.uint8)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 1, 0])
NEAR = np.array([1, 1, 0, 65504], np.float16), np.array([2, 0, 1, np.inf], np.float16)
NUMBER = 2 + 3j
BOX, TRUE, OTHER = (), (0, 0.3), (1, 0.3)  # cells: empty, filled, filled in another colour

# Functions that compute no numbers are drawn as steps from their arguments to their results: the lines of vector.flow.
FLOWS = {
    "asarray": ["[x] -> asarray, no copy -> [Array]", "[Array] -> @ + np.exp np.dot -> kernels here",
                "[Array] -> np.sort and others -> NumPy"],
    "elementwise": ["A function of numbers becomes one of arrays", "f(x, y) -> elementwise -> operation",
                    "[x] [y] -> operation -> [out]", "[of x] [of y] <- f's derivative <- [grad]"],
    "epilogue": ["addmm, then f: C is written, and read again", "[mat1] [mat2] -> addmm -> [C] -> f -> [out]",
                 "epilogue(f): on each tile, while it is near", "[mat1] [mat2] -> addmm, f -> [out]"],
    "explain": ["Nothing runs; no array is read", "[shapes] [dtypes] -> checks, choice -> [record]",
                "The record: path, tile, threads, copies, flops"],
    "for_torch": ["One step of torch's autograd", "[tensors] -> function -> [result]",
                  "[their .grad] <- derivative <- backward()"],
    "fuse": ["a * b + 1 in NumPy: two passes, a temporary", "[a] [b] -> a * b -> [temporary] -> + 1 -> [out]",
             "fuse(lambda a, b: a * b + 1, a, b): one pass", "[a] [b] -> a * b + 1 -> [out]"],
    "GradTape": ["In the block, from what the tape watches on:", "[x] -> x * x -> x[1:] -> sum -> [y]",
                 "tape.gradient(y, x), the same steps backwards:", "[grad] <- of * <- of [1:] <- of sum <- [1]"],
    "MetaArray": ["Shapes and dtypes go through, without memory", "[(2, 3)] [(3, 4)] -> mm -> [{}]"],
    "meta": ["[(2, 3)] [float32] -> meta -> [MetaArray]", "[MetaArray] [MetaArray] -> mm -> [MetaArray]",
             "Sizes that do not fit: the error of a call"],
    "packet": ["One name, several schemas", "add -> packet -> {}", "[arguments] -> packet -> the one that fits"],
    "Packed": ["[weights] -> pack, once -> [Packed]", "[x] [Packed] -> mm or linear -> [out]",
               "[Packed] -> unpack() -> [weights]"],
    "specializations": ["Where a kernel of this process came from", "call -> not there yet -> compiled",
                        "call -> in the cache on disk -> cached", "call -> in the installed wheel -> packaged"],
    "use_in_numpy": ["In the block, by what was measured faster here:", "int32 @ int32 -> kernel here",
                     "float64 @ float64 -> NumPy's own", "The second is a kernel here with floats=True"],
    "vjp": ["vjp(function, x, w) gives the result and pull", "[x] [w] -> function -> [result]",
            "[of x] [of w] <- pull <- [grad]"],
    "watch": ["In the block, of asarray's arrays:", "x + y -> kernel here -> [log]",
              "np.spacing(x) -> NumPy, and why -> [log]"],
}  # fmt: skip


def drawn(name, op=None) -> str | None:
    """The picture of a function's page, op being the operation that it is of; None where no kind is known for it."""
    if name in SHAPES:
        return _shapes(name, op)
    if op is not None and op.elementwise:
        return _elementwise(name, op)
    if name in FLOWS:
        return _flow(name)
    other = {
        "clip": _clip, "define": _table, "mean": _reduced, "modes": _modes, "pack": _panels, "quantize": _stairs,
        "Quantized": _scaled, "register": _table, "register_fallback": _table, "std": _reduced, "threads": _threads,
        "tune": _tiles, "var": _reduced, "where": _where,
    }.get(name)  # fmt: skip
    return other and other(name)


def text(value) -> str:
    """A number in few letters; a bool by its first."""
    if isinstance(value, (bool, np.bool_)):
        return "T" if value else "F"
    return f"{value:.0f}" if np.isfinite(value) and value == round(value) else f"{value:.4g}".replace("e-0", "e-")


def filled(values, fill=BOX):
    """Cells of an array of one dimension; what is true is filled."""
    return [(text(each), TRUE if each is np.True_ else fill) for each in np.asarray(values)]


# -- element by element ------------------------------------------------------------------------------------------------


def _elementwise(name, op):
    function, two = op.function, sum(argument.default is None for argument in op.arguments) == 2
    group = ELEMENTWISE[name].group
    if group == PART:
        found = complex(function(np.array([NUMBER]))[0])
        where = found * 1j if name == "imag" else found  # a height
        return vector.arrow(f"{name} of {NUMBER}", NUMBER, where, f"out = {found:g}".replace("+0j", ""))
    if name.startswith("bitwise"):
        return _bits(name, function, two)
    if group == DIVISOR:
        return _products_of_whole_numbers(name, function)
    if name.startswith("logical"):
        return _rows(name, ("self", "other")[: 1 + two], TRUTH[: 1 + two] if two else TRUTH[1][None, :2], function)
    if group == TEST:
        return _rows(name, ("self",), (SPECIAL,), function)
    if name == "nextafter":
        return _rows(f"{name} of float16", ("self", "towards"), NEAR, function)
    return _curves(name, function, two)


def _curves(name, function, two):
    """Of self from -4 to 4, in y or, of what is true or false, as bands."""
    others = (WHOLE if name == "ldexp" else SECOND) if two else ()
    with np.errstate(all="ignore"):
        lines = {f"other = {y:g}": function(XS, np.full_like(XS, y, type(y))) for y in others} or {"": function(XS)}
    what = f"{name} of self from -4 to 4" + ", for four others" * two
    if next(iter(lines.values())).dtype == bool:
        return vector.bands(f"where {what} is true", XS.tolist(), {k: v.tolist() for k, v in lines.items()})
    return vector.curves(what, XS.tolist(), {k: np.asarray(v, float).tolist() for k, v in lines.items()})


def _rows(what, labels, arrays, function):
    out = function(*arrays)
    lines = [(label, filled(array)) for label, array in zip((*labels, "out"), (*arrays, out))]
    return vector.cells(f"{what}, element by element", lines)


def _bits(name, function, two):
    shift = name.endswith("shift")
    given = SHIFTED if shift else BITS[: 1 + two]
    out = function(*given)
    lines = [(label, _eight(value)) for label, value in zip(("self", "other"), given)]
    if shift:
        lines[1] = ("other", [(f"{given[1]}", None)])
    return vector.cells(f"{name} of uint8, bit by bit", [*lines, ("out", _eight(out))], 1)


def _eight(value):
    return [(bit, TRUE if bit == "1" else BOX) for bit in f"{int(value):08b}"]


def _products_of_whole_numbers(name, function):
    """A table of them, the darker the larger."""
    count = np.arange(1, 9)
    found = function.outer(count, count)
    shades = np.sqrt(found / found.max()) * 0.7
    lines = [("", [(f" {each}", None) for each in count])]
    for each, values, row in zip(count, found, shades):
        lines.append((f"{each}", [(text(value), (0, shade)) for value, shade in zip(values, row)]))
    return vector.cells(f"{name} of 1 to 8 and 1 to 8", lines, 2)


def methods(name) -> str:
    """Draw the results of an operation's reduce, accumulate, outer and at on a small array; elements that `at` writes
    are filled. An operation without a result for these numbers gives ""."""
    function = getattr(nbkernels, name)
    x = np.array([3, 1, 2, 2])
    if np.asarray(function(x, x)).dtype.kind == "f":
        x = x.astype(float)
    written = x.copy()
    calls = {
        "accumulate(self)": lambda: filled(function.accumulate(x)),
        "reduce(self)": lambda: filled([function.reduce(x)]),
        "outer([1, 2], self)": lambda: filled(function.outer(x[1:3], x)[0]),
        "": lambda: filled(function.outer(x[1:3], x)[1]),
        "at(self, [0, 0, 3], 2)": lambda: [(text(value), OTHER if i in (0, 3) else BOX) for i, value in enumerate(
            (function.at(written, [0, 0, 3], x[2]), written)[1])],
    }  # fmt: skip
    lines = [("self", filled(x))]
    for label, call in calls.items():
        try:
            lines.append((label, call()))
        except (TypeError, ValueError):
            continue  # less.reduce, say, is of bools alone
    return vector.cells(f"the methods of {name}", lines) if len(lines) > 1 else ""


# -- arrays ------------------------------------------------------------------------------------------------------------


def _shapes(name, op):
    letters = SHAPES[name].split()
    call = CALLS.get(name, getattr(nbkernels, name))
    found = inspect.signature(getattr(nbkernels, name)).parameters.values()
    names = [each.name for each in found if each.kind is not each.KEYWORD_ONLY and each.name != "subscripts"]
    if names[0] == "operands":
        names = ["a", "b"]
    shapes = [[SIZES[letter] for letter in each] for each in letters]
    make = np.zeros if op is None else nbkernels.meta
    out = call(*(make(shape, "float32") for shape in shapes)).shape
    back = {size: letter for letter, size in SIZES.items()}
    arrays = [*zip(names, letters, shapes), ("out", "".join(back[size] for size in out), out)]
    return vector.shapes(f"shapes of {name}", arrays)


def _reduced(name):
    """Both axes of a matrix, each gone in turn."""
    function = getattr(nbkernels, name)
    x = np.array([[1.0, 2, 3, 6], [2, 2, 2, 2], [0, 5, 1, 10]])
    right, below = function(x, axis=1), function(x, axis=0)
    lines = [("x", filled(x[0])), *(("", filled(row)) for row in x[1:])]
    for line, value in zip(lines, right):
        line[1].extend([("  →", None), (text(value), TRUE)])
    lines[0] = ("x", lines[0][1])
    head = ("", [("", None)] * 5 + [("axis=1", None)])
    return vector.cells(f"{name} along each axis", [head, *lines, ("axis=0", filled(below, OTHER))], 6)


def _where(name):
    condition, x, y = np.array([True, False, False, True]), np.array([1, 2, 3, 4]), np.array([10, 20, 30, 40])
    fills = [TRUE if each else OTHER for each in condition]
    out = [(text(value), fill) for value, fill in zip(nbkernels.where(condition, x, y), fills)]
    lines = [("condition", filled(condition)), ("x", filled(x, TRUE)), ("y", filled(y, OTHER)), ("out", out)]
    return vector.cells("where, element by element", lines)


def _clip(name):
    held = {"clip(x, -1, 2)": nbkernels.clip(XS, -1, 2), "clip(x, max=0.5)": nbkernels.clip(XS, max=0.5)}
    return vector.curves("clip of x from -4 to 4", XS.tolist(), {k: v.tolist() for k, v in held.items()})


def _stairs(name):
    """Draw weights after `quantize` to int4 and to int8, against the weights before."""
    kept = {dtype: nbkernels.quantize(XS[None], dtype=dtype).dequantize()[0] for dtype in ("int4", "int8")}
    return vector.curves("weights from -4 to 4, quantised", XS.tolist(), {k: v.tolist() for k, v in kept.items()})


def _scaled(name):
    w = nbkernels.Quantized(np.array([[1, -2, 3], [4, 5, -6]], np.int8), np.array([0.5, 2.0], np.float32))
    lines = [("", [("values", None), *[("", None)] * 3, ("scale", None), ("", None), ("dequantize()", None)])]
    for values, scale, row, fill in zip(w.values, w.scales, w.dequantize(), (TRUE, OTHER)):
        middle = [("", None), (text(scale[0]), fill), (" =", None)]
        lines.append(("", [*filled(values), *middle, *filled(row, fill)]))
    return vector.cells("a scale for each row of whole numbers", lines, 4)


def _panels(name):
    """A matrix of 3 x 6 in panels of two columns, which a kernel reads from front to back."""
    b = np.arange(18).reshape(3, 6)
    fills = [(i // 2, 0.3) for i in range(6)]
    lines = [("matrix" * (i == 0), [(text(v), fill) for v, fill in zip(row, fills)]) for i, row in enumerate(b)]
    lines.append(("", [("as it lies in memory:", None)]))
    for i in range(3):
        panel = b[:, 2 * i : 2 * i + 2].ravel()
        lines.append((f"panel {i + 1}", [(text(value), (i, 0.3)) for value in panel]))
    return vector.cells("columns of a matrix as panels", lines)


# -- tables and tools --------------------------------------------------------------------------------------------------


def _flow(name):
    lines = FLOWS[name]
    if name == "MetaArray":
        shape = nbkernels.mm(nbkernels.meta((2, 3), "float32"), nbkernels.meta((3, 4), "float32")).shape
        lines = [line.format(shape) for line in lines]
    elif name == "packet":
        overloads = ", ".join(f"add.{each}" for each in nbkernels.packet("add").overloads())
        lines = [line.format(overloads) for line in lines]
    return vector.flow(name, lines)


def _table(name):
    """Who runs what: a row of each operation, a column of each key of arrays, and which cells are yours."""
    theirs, yours, none = ("kernel", BOX), ("yours", OTHER), ("", BOX)
    rows = {"mm": [theirs, theirs, none], "add": [theirs, theirs, none]}
    if name == "define":
        rows["scaled"] = [yours, yours, none]
    elif name == "register":
        rows["mm"][2] = yours
    else:
        rows["mm"][2] = rows["add"][2] = yours
    head = ("", [(key, None) for key in (keys.CPU, keys.CUDA, "your key")])
    return vector.cells(f"what {name} adds to the table of kernels", [head, *rows.items()], 8)


def _modes(name):
    dtypes = list(dict.fromkeys(dtype for each in MODES.values() for dtype in each))
    lines = [("", [(dtype, None) for dtype in dtypes])]
    for mode, of in MODES.items():
        lines.append((f'"{mode}"', [("yes", TRUE) if dtype in of else ("", BOX) for dtype in dtypes]))
    return vector.cells("which dtypes a mode is of", lines, 8)


def _threads(name):
    counts = {"outside": 4, "in threads(2)": 2, "in threads(1)": 1}
    lines = [(label, [("", TRUE if i < count else BOX) for i in range(4)]) for label, count in counts.items()]
    return vector.cells("threads of a call on four cores", [("", [("four cores", None)]), *lines])


def _tiles(name):
    return "![Speed of a product over two sizes of its tiles](../pictures/tiles-panels.png)"
