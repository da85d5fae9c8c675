"""A matrix product inside a kernel of one's own: all threads of a block make a tile of C together.

What cuBLASDx and CUTLASS's collectives are to C++, made of what this library's own products are: collective.py. No
device is needed to make one, or to compile a kernel that calls it.
"""

from __future__ import annotations

import functools
from importlib import import_module
from types import ModuleType

import numpy as np
from numba import cuda, types
from numba.core.errors import TypingError
from numba.np.numpy_support import as_dtype

from ..dispatch import driver
from ..jit.ir.kind import BYTES, SIGNLESS, Kind
from ..problem import GemmProblem
from . import toolchain
from .kernels.chain import word
from .kernels.collective import clear, finish, fragment, lanes, mainloop, slices
from .kernels.elements import stored
from .kernels.functions import SIMULATED, inlined
from .kernels.stage import SHORT
from .kinds import kind_of
from .product.config import WARP, GemmConfig
from .tiles import PIECE, Tiles, default, given

if SIMULATED:
    from .kernels import simulator
else:
    from numba.cuda.extending import intrinsic

HALVES, SMALL = ("float16", "bfloat16"), ("int8", "uint8")


class BlockGemm(ModuleType):
    """C = beta*C + alpha * A @ B of one tile, by all threads of a block together, in a kernel of your own.

    BlockGemm(mat1, mat2=mat1, out=mat1, tiles=None, conj="") takes the dtypes of A, B and C: one for all, of those that
    `nbkernels.mm` knows, or float32 from float16 or bfloat16, or int32 from int8 and uint8. Chains are float32 for
    halves, int32 for smaller integers and bool, else of C's dtype. In kernels bfloat16 arrays are seen as uint16.
    `tiles` are (bm, bn, bk, tm, tn): the tile of C is bm x bn, a thread's part of it tm x tn, and slices of A and B go
    through shared memory bk deep; nbkernels.cuda.tiles.illegal(tiles, dtype of chains) says what is wrong with some. Or
    they are a GemmConfig of nbkernels.cuda.product.config, and the block's warps multiply by matrix units: of tier "M"
    halves, bytes, and float32 rounded to tfloat32; of "D" float64 (compute capability 9.0; "D8": 8.0). All are
    constants of the kernel that is compiled, and so are the attributes bm, bn, bk, tm, tn, `threads` and `shared`
    (bytes). The kernel is launched with blocks of `threads` threads, all of which make these calls:

    zeros()                             chains of this thread, at 0: a local array of (tm, tn), in registers
    scratch()                           shared memory for multiply; call it once in a kernel, and use it again
    multiply(chains, a, b, scratch)     chains += A @ B
    store(c, chains, alpha=1, beta=0)   C = beta*C + alpha*chains, rounded to C's dtype; uses the chains up
    place(i, j)                         (row, column) in the tile of chains[i, j]

    a is m x k, b is k x n, c is m x n, in global or shared memory, with any strides (of whole items): m <= bm and
    n <= bn, and nothing beyond the edges is read or written, so slices at the edge of a matrix may be as short as they
    come. Where beta is 0, C is not read. Chains of complex dtypes are (tm, 2*tn) real numbers: real part and imaginary
    part side by side; `conj` names the operands to conjugate, "a", "b" or "ab".

    multiply begins with cuda.syncthreads() and has one after its last look at a and b: what threads of the block wrote
    before it is seen, and a and b may be written after it. store writes this thread's part alone: a cuda.syncthreads()
    comes before other threads read c, or where c is what multiply has just read no barrier is needed.

    Order of summation: each element is one chain of fused multiply-adds in increasing k, carried on from one multiply
    to the next; then fma(beta, c, alpha*chain). So up to 4096 steps of k have the bits of `nbkernels.addmm`, whatever
    the tiles; beyond, these come of one chain for each 4096 steps, stored with beta=1 after the first. Tier M adds in
    the order of its instructions, 16 steps of halves, 8 of tfloat32, and has the bits of `addmm` by tensor cores where
    every multiply but the last has a multiple of that many; whole numbers are exact, and D has the chain's bits.

    Raises ValueError or TypeError for dtypes, tiles or conj that there are not, and, where the kernel is compiled,
    Numba's TypingError for arrays of other dtypes or dimensions and for factors that the dtype cannot take. Sizes
    cannot be checked in a kernel: a.shape[1] must be b.shape[0].

    >>> import numpy as np
    >>> from numba import cuda
    >>> from nbkernels.cuda.block import BlockGemm
    >>> gemm = BlockGemm("float32", tiles=(16, 32, 4, 4, 4))
    >>> gemm.threads, gemm.shared
    (32, 1792)
    >>> @cuda.jit
    ... def product(c, a, b):
    ...     row, column = cuda.blockIdx.y * gemm.bm, cuda.blockIdx.x * gemm.bn
    ...     chains, scratch = gemm.zeros(), gemm.scratch()
    ...     gemm.multiply(chains, a[row:row + gemm.bm], b[:, column:column + gemm.bn], scratch)
    ...     gemm.store(c[row:row + gemm.bm, column:column + gemm.bn], chains)
    >>> a, b = np.ones((20, 7), "f4"), np.arange(14, dtype="f4").reshape(2, 7).T
    >>> c = np.empty((20, 2), "f4")
    >>> product[(1, 2), gemm.threads](c, a, b)
    >>> c[19]
    array([21., 70.], dtype=float32)
    """

    def __init__(self, mat1, mat2=None, out=None, tiles=None, conj=""):
        names = [named(mat1 if dtype is None else dtype) for dtype in (mat1, mat2, out)]
        kind = checked(*names, conj)
        if not SIMULATED:
            toolchain.ready()  # the kernel that calls it is compiled by Numba
        if tiles is None:
            tiles = default(GemmProblem(64, 64, 64, kind.chain), 1)
        units = isinstance(tiles, GemmConfig)
        tiles = _of_units(tiles, kind) if units else given(tiles, kind.chain)
        super().__init__(f"BlockGemm {' '.join(names)} {tiles}", type(self).__doc__)
        self.bm, self.bn, self.bk, self.threads = tiles.bm, tiles.bn, tiles.bk, tiles.threads
        if units:
            (self.tm, self.tn), self.shared = _collective().fragment(tiles, kind), _collective().size(tiles, kind)
            self.threads = WARP * tiles.warps  # one tile of a block, also where the warp makes it alone
        else:
            self.tm, self.tn, self.shared = tiles.tm, tiles.tn, tiles.shared(BYTES[kind.chain])
        made = _by_units if units else _functions
        self.zeros, self.scratch, self.multiply, self.store, self.place = made(tiles, kind, *names)

    def __repr__(self):
        wrong = missing()
        launched = f"; it compiles here and cannot be launched: {wrong}" if wrong else ""
        return f"<{self.__name__}, {self.threads} threads, {self.shared} bytes of shared memory{launched}>"


def missing() -> str | None:
    """Why kernels cannot be launched here, in one line: there is no driver, say; None where they can."""
    if driver.simulated():
        return None
    try:
        driver.bindings()
    except (ImportError, driver.DriverError) as error:
        return toolchain.brief(error)
    return None


def named(dtype) -> str:
    """A dtype's name; bfloat16 is NumPy's only by ml_dtypes."""
    return "bfloat16" if dtype == "bfloat16" else np.dtype(dtype).name


def checked(a: str, b: str, out: str, conj: str) -> Kind:
    """The kind of product, or why there is none."""
    wider = (a == b and a in HALVES and out == "float32") or (a in SMALL and b in SMALL and out == "int32")
    if not wider and not (a == b == out and SIGNLESS.get(a, "int8" if a in SMALL else a) in BYTES):
        raise TypeError(f"no block gemm makes {out} from {a} and {b}: one dtype for all that nbkernels.mm knows, "
                        "float32 from float16 or bfloat16, or int32 from int8 and uint8")  # fmt: skip
    if conj not in (("", "a", "b", "ab") if out.startswith("complex") else ("",)):
        raise ValueError(f'conj={conj!r}: of complex operands "a", "b" or "ab", else nothing; these are {a} and {b}')
    return kind_of(a, b, out, conj)


def _collective():
    """The module of matrix units, which needs numba-cuda: without it kernels of other tiles can be read, at least."""
    return import_module(f"{__package__}.product.collective")


def _of_units(config: GemmConfig, kind: Kind) -> GemmConfig:
    """The config; a ValueError where a block's matrix units cannot go by it."""
    reasons = ["the simulator has no matrix units"] if SIMULATED else _collective().refused(config, kind)
    if reasons:
        raise ValueError(f"no block gemm of {kind} goes by {config}: {'; '.join(reasons)}")
    return config


@inlined
def thread():
    return SHORT(cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + cuda.blockDim.y * cuda.threadIdx.z))


@functools.cache
def factor(kind: Kind, out: str):
    """factor(value): alpha or beta as a word, or two."""
    known, TRUTH, WORD = number(out), out == "bool", word(kind)

    @inlined
    def real(value):
        return (WORD(known(value) != 0 if TRUTH else known(value)),)

    @inlined
    def both(value):
        return WORD(known(value).real), WORD(known(value).imag)

    return real if kind.planes == 1 else both


@functools.cache
def _by_units(config: GemmConfig, kind: Kind, a: str, b: str, out: str):
    """zeros, scratch, multiply, store and place, as kernels call them, by matrix units."""
    SIZE_A, SIZE_B, SIZE_C = BYTES[kind.a], BYTES[kind.b], BYTES[kind.out]
    zeros, scratch, loop, end, part = _collective().functions(config, kind)
    at_a, at_b, at_c = address(a, kind.a, "a"), address(b, kind.b, "b"), address(out, kind.out, "c")
    word_of = factor(kind, out)

    @inlined
    def multiply(chains, a, b, scratch):
        cuda.syncthreads()
        left = at_a(a), a.strides[0] // SIZE_A, a.strides[1] // SIZE_A
        right = at_b(b), b.strides[0] // SIZE_B, b.strides[1] // SIZE_B
        loop(chains, scratch, thread(), left, a.shape[0], right, b.shape[1], a.shape[1])

    @inlined
    def store(c, chains, alpha=1, beta=0):
        to = at_c(c), c.strides[0] // SIZE_C, c.strides[1] // SIZE_C
        end(chains, thread(), to, c.shape[0], c.shape[1], word_of(beta), word_of(alpha), beta != 0)

    @inlined
    def place(i, j):
        return part(thread(), i, j)

    return zeros, scratch, multiply, store, place


@functools.cache
def _functions(tiles: Tiles, kind: Kind, a: str, b: str, out: str):
    """zeros, scratch, multiply, store and place, as kernels call them."""
    PART, (ROOM_A, ROOM_B), WORD = fragment(tiles, kind), slices(tiles, kind), word(kind)
    SIZE_A, SIZE_B, SIZE_C = BYTES[kind.a], BYTES[kind.b], BYTES[kind.out]
    WIDE, DOWN, ACROSS = PIECE // BYTES[kind.chain], tiles.bm // tiles.tm, tiles.bn // tiles.tn
    loop, end, part = mainloop(tiles, kind), finish(tiles, kind, False), lanes(tiles, kind)
    at_a, at_b, at_c = address(a, kind.a, "a"), address(b, kind.b, "b"), address(out, kind.out, "c")
    word_of = factor(kind, out)

    @inlined
    def zeros():
        chain = cuda.local.array(PART, WORD)
        clear(chain)
        return chain

    @inlined
    def scratch():
        of_a = cuda.shared.array(ROOM_A, WORD, alignment=16)
        of_b = cuda.shared.array(ROOM_B, WORD, alignment=16)
        return of_a, of_b

    @inlined
    def multiply(chains, a, b, scratch):
        cuda.syncthreads()
        loop(chains, scratch[0], scratch[1], thread(),
             at_a(a), a.strides[0] // SIZE_A, a.strides[1] // SIZE_A, 0, a.shape[0],
             at_b(b), b.strides[0] // SIZE_B, b.strides[1] // SIZE_B, 0, b.shape[1], SHORT(a.shape[1]))  # fmt: skip

    @inlined
    def store(c, chains, alpha=1, beta=0):
        to, down, across = at_c(c), c.strides[0] // SIZE_C, c.strides[1] // SIZE_C
        end(chains, thread(), to, down, across, 0, c.shape[0], 0, c.shape[1], to, down, across, to, down, across,
            word_of(beta), word_of(alpha), beta != 0, False)  # fmt: skip

    @inlined
    def place(i, j):
        i0, j0 = part(thread())
        return i0 + i // WIDE * DOWN * WIDE + i % WIDE, j0 + j // WIDE * ACROSS * WIDE + j % WIDE

    return zeros, scratch, multiply, store, place


@functools.cache
def address(dtype: str, item: str, name: str):
    """address(x): a pointer to the first `item` of a matrix of `dtype`, as kernels index it."""
    want = {"bool": "bool", "bfloat16": "uint16"}.get(dtype, dtype)
    POINTER = types.CPointer(stored(item))

    def fits(x):
        if getattr(x, "ndim", None) != 2 or str(x.dtype) != want:
            raise TypingError(f"block gemm: {name} must be a matrix of {want}, and it is {x}")

    if SIMULATED:
        return simulator.within(fits, as_dtype(stored(item)))

    @intrinsic
    def at(typing, x):
        fits(x)

        def emit(context, builder, signature, args):
            data = context.make_array(x)(context, builder, args[0]).data
            return builder.bitcast(data, context.get_value_type(POINTER))

        return POINTER(x), emit

    return at


@functools.cache
def number(dtype: str):
    """known(x): x, where it is a number that a product of `dtype` can be multiplied by."""
    whole, real = np.dtype(dtype if dtype != "bfloat16" else "f4").kind in "iub", not dtype.startswith("complex")

    def fits(kind, x):
        if kind not in ("iub" if whole else "iubf" if real else "iubfc"):
            raise TypingError(f"block gemm: alpha and beta of {dtype} must be {'whole' if whole else 'real'} numbers, "
                              f"not {x}")  # fmt: skip

    if SIMULATED:

        def known(x):
            fits(np.asarray(x).dtype.kind, x)
            return x

        return known

    @intrinsic
    def at(typing, x):
        fits(str(x).removeprefix("Literal[")[0], x)
        return x(x), lambda context, builder, signature, args: args[0]

    return at
