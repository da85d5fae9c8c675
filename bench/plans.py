"""The tables of docs/kernels.md: which calls take each of the CPU's paths, by the constants that decide it.

`python bench/report.py` writes them between `<!-- plans products -->` or `<!-- plans elementwise -->` and
`<!-- end -->`.
"""

from nbkernels.cpu.elementwise import gates
from nbkernels.cpu.elementwise.loop_nest import BUFFERS
from nbkernels.cpu.gemm import block, blocking, deep, even, little, paths, short, stacks, stacks_float
from nbkernels.cpu.gemv import jobs
from nbkernels.cpu.runtime.status import PATHS
from nbkernels.jit.ir.turn import TILE
from nbkernels.jit.ir.vector import LINE

SEGMENT, EIGHT = blocking.SEGMENT, "of 8 bytes each"


def cube(number):
    """
    >>> cube(16**3)
    '16³'
    """
    root = round(number ** (1 / 3))
    assert root**3 == number
    return f"{root}³"


def size(number):
    """
    >>> size(65536), size(1 << 20)
    ('64 KiB', '1 MiB')
    """
    unit = 20 if number >= 1 << 20 and number % (1 << 20) == 0 else 10
    assert number % (1 << unit) == 0
    return f"{number >> unit} {'MiB' if unit == 20 else 'KiB'}"


def products():
    """Paths of products down: which can take them, and what they keep in memory."""
    most, wide = paths.PANEL // LINE, paths.PANEL // (2 * LINE)
    planes = f"ceil(k / {SEGMENT})"
    narrow = f"n <= {paths.IN_PLACE} * nr ({paths.NARROW_IN_PLACE} * nr without AVX-512)"
    there = f"rows, or columns that are no multiple of {size(blocking.WAY)} apart, are contiguous"
    shared = f"more than {cube(paths.AWAKE)} multiply-adds"
    rows = {
        "small": (
            f"m, n > 1, m * n * max(k, {paths.STORED}) <= {cube(paths.LITTLE)}; up to {cube(paths.SERIAL)}, by one "
            f"thread, of k <= {wide} ({most} without AVX-512)",
            f"none: {size(block.ROOM)} for A and {size(paths.PANEL)} for a panel of B, which the code itself keeps",
        ),
        "gemv": (
            "m = 1 or n = 1, of a matrix whose rows or columns are contiguous; of floats, complex numbers, and whole "
            "numbers of 4 and 8 bytes (with AVX2 of 4)",
            f"none where the chains are results (k <= {SEGMENT}, no self, alpha 1) or up to "
            f"{size(jobs.HERE)}; {planes} * m * n, {EIGHT}; of other dtypes "
            f"than floats none; {size(jobs.KEPT)} for a vector that is strided, which the code itself keeps",
        ),
        "mv, addmv": (
            "a matrix and a vector of float32 or float64",
            f"likewise; {planes} * m, {EIGHT}",
        ),
        "thin": (
            f"k <= {paths.DEEPEST}, into contiguous rows or columns; threads share more than {cube(paths.AWAKE)} "
            "elements of C",
            "none; k * n, n up to a multiple of nr, where B's rows are not contiguous",
        ),
        "deep": (
            f"any; threads share more than {cube(paths.BRIEF)} multiply-adds",
            f"threads * nr * min(k, {SEGMENT}) where a panel of B is packed; {planes} * m * n where k > {SEGMENT}, "
            f"out's rows are not contiguous or B is beyond L2 and read by rows (m <= {deep.LOW})",
        ),
        "columns": (
            f"k <= {paths.DEEPEST}; {shared}",
            f"none where {narrow}, or with AVX-512 (32 vector registers) where A's {there}; else for each thread "
            "m * k, m up to a multiple of mr, but less than L2",
        ),
        "short": (
            f"m or n <= {paths.SHORT_ROWS}, k <= {SEGMENT}; {shared}",
            f"for each thread m * k, m up to a multiple of mr, a panel of {short.STEPS} * nr, and m * w for w columns "
            f"of a job, {size(short.BROAD)} of them",
        ),
        "one triangle, mirrored": (
            f"a matrix times its own transpose, in the same memory (`x @ x.T`, `x.T @ x`), of {paths.MIRRORED} rows a "
            f"thread and more, k >= {paths.MIRRORED_STEPS}, no complex numbers, nothing added or scaled; in halves, "
            "each product by its own path",
            "that of the parts",
        ),
        "packed": (
            f"any; threads share more than {cube(paths.PARALLEL)} multiply-adds",
            "the panels of A and B, and up to two planes of sums: `buffers` in `nbkernels/cpu/gemm/context.py`",
        ),
        "small, other dtypes": (
            f"up to {cube(paths.PARALLEL)}, {cube(paths.SERIAL)} on one thread while panels fit, in one call",
            f"none: {size(block.ROOM)} that the code itself keeps for A and B",
        ),
        "stacks": (
            f"of products that lie evenly in memory: matrices and vectors up to {cube(paths.ALONE)}, k <= {SEGMENT}; "
            f"up to {cube(paths.SERIAL)}, k <= {paths.DEEPEST}, m and n > 3, not thin, where threads that "
            f"take one each are done together; straight-line code where A and B have up to {size(even.NEAR)}; by "
            f"panels of B where it has {size(4 * stacks_float.TURNED)} and more and meets more than {stacks.MET} "
            "tiles of rows",
            f"none; above {cube(paths.ALONE)}, {size(block.ROOM)} a thread without AVX-512, or "
            f"where not A's {there}, and not {narrow}",
        ),
        "stacks of other dtypes and modes, and uneven ones": (
            f"the same: matrices up to {cube(paths.PARALLEL)}, and up to {cube(paths.SERIAL)} where threads that take "
            "one each are done together",
            f"{size(block.ROOM)} for each thread but the first, or for each one the panels of A and B of a product, if "
            f"they are larger; none for whole numbers up to {little.OUTPUTS} outputs and {cube(little.LITTLE)}",
        ),
    }
    assert set(PATHS.values()) <= set(rows)
    return ["path", "which products (m x k by k x n)", "memory beside the operands, in items of theirs"], rows


def elementwise():
    """Loops of an element-wise plan down: which take them, and what they move."""
    rows = {
        "rows": (
            "all others",
            f"nothing; inputs reversed or up to {gates.NEAR} elements apart are read by whole vectors, rows end in "
            "masked ones",
        ),
        "collected": (
            f"rows of less than {gates.SHORT} elements, out contiguous",
            "inputs to blocks of a quarter of L1, a vector of each row at once",
        ),
        "across": (
            f"inputs that touch along another dimension, from {gates.MANY} elements on ({gates.MANY >> 4} of costly "
            "operations), items of 4 or 8 bytes, columns that do not meet in few sets of L1",
            "nothing: squares of a line by 8 or 4 columns are turned in registers and computed with",
        ),
        "transposed": (
            "other inputs that are contiguous along another dimension",
            f"their tiles of {TILE} rows, {BUFFERS >> 10} KiB, turned in registers; of streaming stores tiles of "
            f"{gates.TALL} rows by {gates.BROAD} bytes, of two inputs half as many",
        ),
        "streaming": (
            f"out as large as the last cache, or {size(1 << 25)}; turned 15 times L2, half as much where "
            "columns crowd each other",
            "stores past the caches",
        ),
    }
    return ["loops of a plan", "which", "what moves"], rows


def table(name):
    """The lines of a table, {"products": ..., "elementwise": ...}[name]."""
    head, rows = {"products": products, "elementwise": elementwise}[name]()
    return [head, ["---"] * len(head), *([path, *cells] for path, cells in rows.items())]
