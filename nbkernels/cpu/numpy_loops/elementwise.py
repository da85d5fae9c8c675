"""NumPy's inner loops of element-wise operations, over ours: what a ufunc calls in place of its own.

A loop is a C function, void(addresses, sizes, strides, data), called with or without the GIL, from any thread; by way
of jit/trampolines.py it gets the address of its slot as well: words that say which kernel it runs, and count what it
did.

NumPy reads the thread's floating-point flags after a loop. What is no computation of floats leaves them as they were,
but for divisions of integers by zero and the like. Of floats, ours may raise some that no element deserves, in lanes
that are not stored: so where one of SERIOUS goes up, NumPy's own loop computes the same again.
"""

from __future__ import annotations

import functools

from ...jit.address import copy, exchange, invoke, pointer, scratch, seen
from ...jit.cache import compiled, jit
from ...jit.calling import call_loop
from ...jit.counters import add_to
from ...jit.flags import DIVIDE, INVALID, OVERFLOW, UNDERFLOW, given, taken

# A slot: what the trampoline calls; NumPy's own loop, and elements below which it calls that by itself, which is not
# counted; our kernel, and what compiles it, or 0; elements, or multiply-adds, below which NumPy's is faster;
# whether flags of floats count; how many inputs; which of FORMS; bytes of an item of each operand. Then calls and work
# (elements, or multiply-adds) of each of COUNTED, and what products read (products.py).
BODY, OLD, GATE, KERNEL, MAKER, LEAST, FLOATS, INPUTS, FORM, WIDTHS = range(10)
COUNTS = WIDTHS + 3
# What is counted: calls that ran here; those left to NumPy: all of them, small ones, layouts that are not for us; what
# NumPy computed again because of a flag, which ran here, too.
COUNTED = HERE, OTHER, SMALL, LAYOUT, AGAIN = range(COUNTS, COUNTS + 10, 2)
PRODUCT = COUNTS + 10
WORDS = 40
FORMS = ELEMENTWISE, MATMUL, VECDOT, MATVEC, VECMAT = range(5)
# What FLOATS says of exp of float16, where our kernel and not NumPy's takes that of -inf for an underflow.
SINKING, MINUS_INFINITY = 2, 0xFC00
SERIOUS = INVALID | DIVIDE | OVERFLOW
PIECE = 8192  # bytes of an operand that is kept, where it will be overwritten, in case that it is needed again
KEPT = 2 * PIECE
SIGNATURE = f"void({', '.join(['int64'] * 5)})"
# A room of a call: addresses and steps for the kernel, row steps, faults; addresses, strides and size for NumPy's loop.
STEPS, NONE, FAULTS, ADDRESSES, STRIDES, SIZE, ROOM = 24, 48, 72, 88, 112, 136, 144


@jit
def left(s, why, work, args, dims, strides, data):
    """NumPy's own loop, counted."""
    add_to(s, why, 1)
    add_to(s, why + 1, work)
    invoke(s[OLD], (args, dims, strides, data))


@jit
def ran(s, work):
    """A call that runs here, counted."""
    add_to(s, HERE, 1)
    add_to(s, HERE + 1, work)


@jit
def made(s, slot):
    """Whether there is a kernel: the first call has it compiled, and others meanwhile go to NumPy's loop."""
    maker = exchange(s, MAKER, 0) if s[KERNEL] == 0 else 0
    if maker != 0:
        raised = taken()
        invoke(maker, (slot,))
        taken()
        given(raised)
    return seen(s, KERNEL) != 0


@jit(forceinline=True)
def work_of(s, dims):
    """Elements, or multiply-adds, of a call."""
    form = s[FORM]
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
    inputs, over = s[INPUTS], 0
    out, step, width = a[inputs], t[inputs], s[WIDTHS + inputs]
    if n > 1 and abs(step) < width:
        return -1
    for i in range(inputs):
        if _meet(out, step, width, a[i], t[i], s[WIDTHS + i], n):
            if a[i] != out or t[i] != step or s[WIDTHS + i] != width or (s[FLOATS] != 0 and step != width):
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
def _of_floats(s, a, t, n, over, room, data):
    """Piece by piece where the output overwrites an input; a piece whose computation raised a flag is NumPy's."""
    raised, inputs, kept = taken(), s[INPUTS], scratch(KEPT)
    words, again = pointer(room), pointer(room + ADDRESSES)
    piece = n if over == 0 else PIECE // s[WIDTHS + inputs]
    for start in range(0, n, piece):
        count = min(piece, n - start)
        words[0] = again[inputs] = a[inputs] + start * t[inputs]
        for i in range(inputs):
            words[1 + i] = again[i] = a[i] + start * t[i]
            words[2] = words[1 + i]  # kernels of one input have it twice
            if over >> i & 1 != 0:
                again[i] = kept + i * PIECE
                copy(again[i], words[1 + i], count * s[WIDTHS + i])
        call_loop(s[KERNEL], room, 1, count, room + NONE, room + STEPS, room + FAULTS)
        up = taken()
        sunk = up & UNDERFLOW != 0 and s[FLOATS] == SINKING and _has(words[1], t[0], count, MINUS_INFINITY)
        if up & SERIOUS != 0 or sunk:
            pointer(room + SIZE)[0] = count
            left(s, AGAIN, count, room + ADDRESSES, room + SIZE, room + STRIDES, data)
            up = taken()
        raised |= up
    given(raised)


@jit
def _whole(s, room, n):
    """A row whose operation raises no flags but those of its faults."""
    raised, faults = taken(), pointer(room + FAULTS)
    call_loop(s[KERNEL], room, 1, n, room + NONE, room + STEPS, room + FAULTS)
    taken()
    raised |= DIVIDE if faults[0] != 0 else 0
    given(raised | (OVERFLOW if faults[1] != 0 else 0))


def _elementwise(args, dims, strides, data, slot):
    s, a, t, n = pointer(slot), pointer(args), pointer(strides), pointer(dims)[0]
    small = n < s[LEAST]
    over = -1 if small else _overwritten(s, a, t, n)
    if over < 0 or not made(s, slot):
        left(s, SMALL if small else LAYOUT if over < 0 else OTHER, n, args, dims, strides, data)
        return
    ran(s, n)
    room, inputs = scratch(ROOM), s[INPUTS]
    words, steps, none, same = pointer(room), pointer(room + STEPS), pointer(room + NONE), pointer(room + STRIDES)
    words[0], steps[0], same[inputs] = a[inputs], t[inputs], t[inputs]
    for i in range(inputs):
        words[1 + i], steps[1 + i], same[i] = a[i], t[i], t[i]
        words[2], steps[2] = a[i], t[i]
    for i in range(5):  # and FAULTS, which follow
        none[i] = 0
    if s[FLOATS] != 0:
        _of_floats(s, a, t, n, over, room, data)
    else:
        _whole(s, room, n)


def _other(args, dims, strides, data, slot):
    s = pointer(slot)
    left(s, OTHER, work_of(s, pointer(dims)), args, dims, strides, data)


@functools.cache
def elementwise() -> int:
    """What the trampoline of an element-wise slot calls."""
    return compiled(_elementwise, SIGNATURE, "inner_elementwise")


@functools.cache
def other() -> int:
    """What that of a slot calls which only counts."""
    return compiled(_other, SIGNATURE, "inner_other")
