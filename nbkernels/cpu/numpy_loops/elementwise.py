"""NumPy's inner loops of element-wise operations, over ours: what a ufunc calls in place of its own.

A loop is a C function, void(addresses, sizes, strides, data), called with or without the GIL, from any thread; by way
of jit/abi/trampolines.py it gets the address of its slot, too: words that say which kernel it runs, and count what it
did.

NumPy reads the thread's floating-point flags after a loop. What is no computation of floats leaves them as they were,
but for divisions of integers by zero and the like. Of floats, ours may raise some that no element deserves, in lanes
that are not stored: so where one of SERIOUS goes up, NumPy's own loop computes the same again.
"""

from __future__ import annotations

import functools

from ...jit.abi.address import copy, invoke, pointer, scratch
from ...jit.abi.flags import DIVIDE, OVERFLOW, SERIOUS, UNDERFLOW, given, taken, taken_everywhere
from ...jit.abi.record import Record, address
from ...jit.abi.sharing import add_to, exchange, seen
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit

# A slot: what the trampoline calls; NumPy's own loop, and elements below which it calls that by itself, which is not
# counted; our kernel, and what compiles it, or 0; elements, or multiply-adds, below which NumPy's is faster;
# whether flags of floats count; how many inputs; which of FORMS; bytes of an item of each operand; calls and work
# (elements, or multiply-adds) of each of COUNTED. Then what products read: what computes them, its plan and factors
# (call.py); the kernel of rows; how many integers' multiply-adds one takes in NumPy's own loop; whether stacks of small
# matrices alone are for us.
SLOT = Record(
    "Slot",
    """
    body old gate kernel maker least floats inputs form widths[3] counts[10]
    product plan factors rows theirs smalls
    """,
)
slot_at, KERNEL, MAKER = SLOT.pointer(), SLOT["kernel"], SLOT["maker"]
# What is counted: calls that ran here; those left to NumPy: all of them, small ones, layouts that are not for us; what
# NumPy computed again because of a flag, which ran here, too.
COUNTED = HERE, OTHER, SMALL, LAYOUT, AGAIN = range(SLOT["counts"], SLOT["counts"] + 10, 2)
FORMS = ELEMENTWISE, MATMUL, VECDOT, MATVEC, VECMAT = range(5)
# What `floats` says of exp of float16, where our kernel and not NumPy's takes that of -inf for an underflow; and of
# divisions that leave a rest, where lanes that are not stored may raise one (AVX-512).
SINKING, RESTING, MINUS_INFINITY = 2, 3, 0xFC00
PIECE = 8192  # bytes of an operand that is kept, where it will be overwritten, in case that it is needed again
KEPT = 2 * PIECE
SIGNATURE = f"void({', '.join(['int64'] * 5)})"
# A call: addresses, steps and row steps for the kernel, and its faults; addresses, strides and size for NumPy's loop.
CALL = Record("LoopCall", "words[3] steps[3] none[3] faults[2] addresses[3] strides[3] size")
call_at, ROOM, SIZE = CALL.pointer(), CALL.bytes, CALL["size"]


@jit
def left(s, why, work, args, dims, strides, data):
    """NumPy's own loop, counted."""
    add_to(s, why, 1)
    add_to(s, why + 1, work)
    invoke(s.old, (args, dims, strides, data))


@jit
def ran(s, work):
    """A call that runs here, counted."""
    add_to(s, HERE, 1)
    add_to(s, HERE + 1, work)


@jit
def made(s, slot):
    """Whether there is a kernel: the first call has it compiled, and others meanwhile go to NumPy's loop."""
    maker = exchange(s, MAKER, 0) if s.kernel == 0 else 0
    if maker != 0:
        raised = taken()
        invoke(maker, (slot,))
        taken()
        given(raised)
    return seen(s, KERNEL) != 0


@jit(forceinline=True)
def work_of(s, dims):
    """Elements, or multiply-adds, of a call."""
    form = s.form
    work = dims[0]
    if form != ELEMENTWISE:
        work *= dims[1]
    if form in (MATMUL, MATVEC, VECMAT):
        work *= dims[2]
    return work * dims[3] if form == MATMUL else work


@jit
def _meet(p, step, width, q, other, size, n):
    """Whether two rows of n items share memory, by their extents."""
    low, high = p + min(0, (n - 1) * step), p + max(0, (n - 1) * step) + width
    first, last = q + min(0, (n - 1) * other), q + max(0, (n - 1) * other) + size
    return first < high and low < last


@jit
def _overwritten(s, a, t, n):
    """Which inputs the output overwrites element for element, a bit each; -1 where the loop is not for this layout: a
    fold, or another overlap."""
    inputs, over = s.inputs, 0
    out, step, width = a[inputs], t[inputs], s.widths[inputs]
    if n > 1 and abs(step) < width:
        return -1
    for i in range(inputs):
        if _meet(out, step, width, a[i], t[i], s.widths[i], n):
            if a[i] != out or t[i] != step or s.widths[i] != width or (s.floats != 0 and step != width):
                return -1
            over |= 1 << i
    return over


@jit
def _has(p, step, n, bits):
    """Whether one of n elements of 2 bytes, `step` bytes apart, is this one."""
    room = scratch(8)
    w = pointer(room)
    w[0] = 0
    for i in range(n):
        copy(room, p + i * step, 2)
        if w[0] == bits:
            return True
    return False


@jit
def _of_floats(s, a, t, n, over, f, data):
    """Piece by piece where the output overwrites an input; a piece whose computation raised a flag is NumPy's."""
    raised, inputs, kept = taken(), s.inputs, scratch(KEPT)
    piece = n if over == 0 else PIECE // s.widths[inputs]
    for start in range(0, n, piece):
        f.size = min(piece, n - start)
        f.words[0] = f.addresses[inputs] = a[inputs] + start * t[inputs]
        for i in range(inputs):
            f.words[1 + i] = f.addresses[i] = a[i] + start * t[i]
            f.words[2] = f.words[1 + i]  # kernels of one input have it twice
            if over >> i & 1 != 0:
                f.addresses[i] = kept + i * PIECE
                copy(f.addresses[i], f.words[1 + i], f.size * s.widths[i])
        _call(s, f, f.size)
        up = taken()
        sunk = False
        if up & UNDERFLOW != 0:
            sunk = s.floats == RESTING or (s.floats == SINKING and _has(f.words[1], t[0], f.size, MINUS_INFINITY))
        if up & SERIOUS != 0 or sunk:
            sizes = address(f) + 8 * SIZE
            taken_everywhere()
            left(s, AGAIN, f.size, address(f.addresses), sizes, address(f.strides), data)
            up = taken_everywhere()
        raised |= up
    given(raised)


@jit(forceinline=True)
def _call(s, f, n):
    """Our kernel over a row."""
    invoke(s.kernel, (address(f.words), 1, n, address(f.none), address(f.steps), address(f.faults)))


@jit
def _whole(s, f, n):
    """A row whose operation raises no flags but those of its faults."""
    raised = taken()
    _call(s, f, n)
    taken()
    raised |= DIVIDE if f.faults[0] != 0 else 0
    given(raised | (OVERFLOW if f.faults[1] != 0 else 0))


def _elementwise(args, dims, strides, data, slot):
    s, a, t, n = slot_at(slot), pointer(args), pointer(strides), pointer(dims)[0]
    small = n < s.least
    over = -1 if small else _overwritten(s, a, t, n)
    if over < 0 or not made(s, slot):
        left(s, SMALL if small else LAYOUT if over < 0 else OTHER, n, args, dims, strides, data)
        return
    ran(s, n)
    f, inputs = call_at(scratch(ROOM)), s.inputs
    f.words[0], f.steps[0], f.strides[inputs] = a[inputs], t[inputs], t[inputs]
    for i in range(inputs):
        f.words[1 + i], f.steps[1 + i], f.strides[i] = a[i], t[i], t[i]
        f.words[2], f.steps[2] = a[i], t[i]
    f.none[0] = f.none[1] = f.none[2] = f.faults[0] = f.faults[1] = 0
    if s.floats != 0:
        _of_floats(s, a, t, n, over, f, data)
    else:
        _whole(s, f, n)


def _other(args, dims, strides, data, slot):
    s = slot_at(slot)
    left(s, OTHER, work_of(s, pointer(dims)), args, dims, strides, data)


@functools.cache
def elementwise() -> int:
    """What the trampoline of an element-wise slot calls."""
    return compiled(_elementwise, SIGNATURE, "inner_elementwise")


@functools.cache
def other() -> int:
    """What that of a slot calls which only counts."""
    return compiled(_other, SIGNATURE, "inner_other")
