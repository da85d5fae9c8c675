"""Chains of each kind of product in kernels: load, step and end. Plain Python, with the meaning of jit/ir/chain.py.

A number is held as one word, a complex one as two neighbouring words, real and imaginary: in registers, in shared
memory, and in the factors alpha and beta.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ...elementary.real import fma
from ...jit.ir.kind import Kind
from ..product.end import End
from .elements import computed, reading, stored, writing
from .functions import device, inlined

_fma = device(fma, "float32")


def word(kind: Kind):
    """The type of a word."""
    return getattr(types, kind.word)


def reader(dtype: str, kind: Kind):
    """read(x, place): an element that is not complex, as a word."""
    WORD, element = word(kind), reading(dtype)

    @inlined
    def read(x, place):
        return WORD(element(x, place))

    return read


@functools.cache
def loader(kind: Kind, operand: str):
    """load(held, q, x, place, inside): element q of what a thread holds of mat1 ("a") or mat2 ("b").

    Beyond the edges A is 0 and B is -0: their product -0 is the one number that changes no sum, not even a chain at -0.
    Complex chains, to which no product of zeros is harmless, stop at the edge.
    """
    read, WORD = reader(getattr(kind, operand), kind), word(kind)
    ZERO, SIGN = WORD(0), WORD(-1 if operand in kind.conj else 1)
    PAD = WORD(-0.0) if operand == "b" and kind.way == "fma" else ZERO

    @inlined
    def one(held, q, x, place, inside):
        held[q] = read(x, place) if inside else PAD

    @inlined
    def two(held, q, x, place, inside):
        held[2 * q] = x[place].real if inside else ZERO
        held[2 * q + 1] = SIGN * x[place].imag if inside else ZERO

    return two if kind.planes == 2 else one


@functools.cache
def stepper(kind: Kind):
    """step(chain, i, j, column, row): chain[i, j] after one more word of each operand."""
    WORD, TURNED = word(kind), kind.turned

    @inlined
    def fused(chain, i, j, column, row):
        chain[i, j] = _fma(column[i], row[j], chain[i, j])

    @inlined
    def modulo(chain, i, j, column, row):
        chain[i, j] = WORD(chain[i, j] + WORD(column[i] * row[j]))

    @inlined
    def complexes(chain, i, j, column, row):
        ar, ai, br, bi = column[2 * i], column[2 * i + 1], row[2 * j], row[2 * j + 1]
        chain[i, 2 * j] = _fma(-ai, bi, _fma(ar, br, chain[i, 2 * j]))
        if TURNED:
            chain[i, 2 * j + 1] = _fma(ar, bi, _fma(ai, br, chain[i, 2 * j + 1]))
        else:
            chain[i, 2 * j + 1] = _fma(ai, br, _fma(ar, bi, chain[i, 2 * j + 1]))

    return complexes if kind.planes == 2 else fused if kind.way == "fma" else modulo


ENDED = """\
def ended(line, j, ends, r, q):
    arrays, numbers, item = ends
    held = cuda.local.array(1, ITEM)
    write(line, j, 0, held, 0)
    return OUT(call({given}))
"""


@functools.cache
def ended(end: End | None, kind: Kind):
    """ended(line, j, ends, r, q): the function of chain j, rounded to the product's dtype, and of the operands at row r
    and column q; ends are (arrays, numbers, item of the batch). None without an end."""
    if end is None:
        return None
    scope = dict(cuda=cuda, call=inlined(device(end.function, end.dtype)), write=ending(kind)[3], ITEM=stored(kind.out),
                 OUT=computed(end.out[1]), P=computed(end.product), read=reading(kind.out))  # fmt: skip
    given, arrays, numbers = ["P(read(held, 0))"], int(end.before), 0
    for k, (dtype, *held) in enumerate(end.operands):
        if held:
            at = f"arrays[{arrays}]"
            place = f"item * {at}[3] + r * {at}[1] + q * {at}[2]"
            scope |= {f"C{k}": computed(*held), f"read{k}": reading(dtype)}
            given.append(f"C{k}(read{k}({at}[0], {place}))")
            arrays += 1
        else:
            given.append(f"numbers[{numbers}]")
            numbers += 1
    exec(compile(ENDED.format(given=", ".join(given)), f"<nbkernels {end.function.__name__}>", "exec"), scope)
    return inlined(scope["ended"])


def matrix(dtype: str):
    """The type of (pointer, strides of rows, columns and items in elements)."""
    return types.Tuple((types.CPointer(stored(dtype)), *(types.int64,) * 3))


def parameters(end: End | None, kind: Kind):
    """The types of (arrays, numbers)."""
    if end is None:
        return types.Tuple((types.Tuple(()), types.Tuple(())))
    arrays = [kind.out] * end.before + [dtype for dtype, *held in end.operands if held]
    numbers = [computed(dtype) for dtype, *held in end.operands if not held]
    return types.Tuple((types.Tuple([*map(matrix, arrays)]), types.Tuple(numbers)))


@functools.cache
def ending(kind: Kind):
    """scale, add, blend and write, of element j of a line of chains.

    scale(line, j, alpha)                alpha * line
    add(line, j, factor, total, place)   line + total[place], the segments before; any factor
    blend(line, j, beta, x, place)       line + beta * x[place], in one rounding a product
    write(line, j, factor, c, place)     c[place] = line; any factor

    Of a complex factor the products with the real part come first, then those with the imaginary part where it is
    not 0, so that 1 * inf is inf.
    """
    WORD, WHOLE = word(kind), kind.way != "fma"
    TRUTH, read, store = kind.out == "bool", reader(kind.out, kind), writing(kind.out)

    @inlined
    def add(line, j, factor, total, place):
        line[j] = WORD(line[j] + total[place])

    @inlined
    def scale(line, j, alpha):
        if TRUTH:
            line[j] = WORD(line[j] != 0)
        line[j] = WORD(alpha[0] * line[j])

    @inlined
    def blend(line, j, beta, x, place):
        if WHOLE:
            line[j] = WORD(line[j] + WORD(beta[0] * read(x, place)))
        else:
            line[j] = _fma(beta[0], read(x, place), line[j])

    @inlined
    def write(line, j, factor, c, place):
        store(c, place, line[j])

    @inlined
    def add_complex(line, j, factor, total, place):
        value = total[place]
        line[2 * j], line[2 * j + 1] = line[2 * j] + value.real, line[2 * j + 1] + value.imag

    @inlined
    def scale_complex(line, j, alpha):
        re, im = line[2 * j], line[2 * j + 1]
        line[2 * j], line[2 * j + 1] = alpha[0] * re, alpha[0] * im
        if alpha[1] != 0:
            line[2 * j], line[2 * j + 1] = _fma(-alpha[1], im, line[2 * j]), _fma(alpha[1], re, line[2 * j + 1])

    @inlined
    def blend_complex(line, j, beta, x, place):
        value = x[place]
        re, im = WORD(value.real), WORD(value.imag)
        line[2 * j], line[2 * j + 1] = _fma(beta[0], re, line[2 * j]), _fma(beta[0], im, line[2 * j + 1])
        if beta[1] != 0:
            line[2 * j], line[2 * j + 1] = _fma(-beta[1], im, line[2 * j]), _fma(beta[1], re, line[2 * j + 1])

    @inlined
    def write_complex(line, j, factor, c, place):
        c[place] = complex(line[2 * j], line[2 * j + 1])

    if kind.planes == 2:
        return scale_complex, add_complex, blend_complex, write_complex
    return scale, add, blend, write
