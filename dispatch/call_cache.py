"""A cache of general calls on NumPy's arrays, by their dtypes, shapes, strides, numbers and words.

What meta said of such a call and what was checked then holds again, so that it begins with the kernel. What may change
between two calls is looked at in each: whether out can be written. An op forgets its calls when its kernels change.
"""

from . import keys
from .adapter import library
from .run import launch

MOST = 512  # calls that an op remembers
PLAIN = frozenset((bool, int, float, complex, str, type(None)))


def key_of(op, args, out):
    """Return what tells this call of an op from others, or None where it has to be described each time.

    It has to where the op has no meta function, where its result may be one of the arguments, and where an argument is
    neither an ndarray itself, a number, a string nor None, nor a sequence of numbers and strings.
    """
    if not op.structured or op.delegates_to is not None or op.aliased is not None:
        return None
    ndarray, key = library("numpy").ndarray, []
    for x in (*args, out):
        kind = type(x)
        if kind is ndarray:
            key.append((x.dtype, x.shape, x.strides))
        elif kind in PLAIN:
            key.append((kind, x))
        elif (kind is tuple or kind is list) and all(type(part) in PLAIN for part in x):
            key.append(repr(x))  # tells 1 from True
        else:
            return None
    return tuple(key)


def keep(op, key, row, slots, args, result):
    """Remember a call that has succeeded, if a kernel of the CPU has made its result."""
    if row.reason in ("direct", *keys.COMPOSITES) and 0 not in result.shape:
        if len(op.described) >= MOST:
            op.described.clear()
        op.described[key] = Call(op, row, slots, args, result)
        if op.table.row(keys.CPU) is not row:  # replaced meanwhile, by another thread
            op.forget()


class Call:
    """A call that was described: its row, the result that it had, and the arguments that were converted for it."""

    def __init__(self, op, row, slots, args, result):
        self.row, self.shape, self.dtype, self.strides = row, result.shape, result.dtype, result.strides
        self.taken, self.converted = op.kernel_arguments, {}
        for i in set(self.taken).difference(op.tensors):
            if slots[i] is not args[i]:
                self.converted[i] = slots[i]

    def again(self, op, name, args, out):
        """The result; None where out cannot be written, which the general path says properly."""
        if out is not None and not out.flags.writeable:
            return None
        made = library("numpy").ndarray(self.shape, self.dtype, strides=self.strides) if out is None else out
        launch(op, name, self.row, made, *[self.converted.get(i, args[i]) for i in self.taken])
        return made[()] if out is None and not self.shape else made
