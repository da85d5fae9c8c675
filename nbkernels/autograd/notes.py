"""Notes of calls: what a tape keeps of a call of an operation for its derivative, and the step backwards.

What is the same for all calls of an operation whose arguments are watched alike is found once, and kept with the rows
of its table, by which the next call goes if they have not changed.
"""

from functools import partial

from numpy import ndarray

from ..dispatch import arrays, derive, function, keys
from ..dispatch.function import parameter
from ..dispatch.schema import REQUIRED
from ..dispatch.traced import LISTS, Traced, bare, flat
from . import on_views
from .saved import check, keep
from .watched import Watched, numbers

# Made as dispatch/function.py makes functions: loops over the arguments of add take 1 us more.
NOTED = """\
def noted({names}, out):
    if out is not None or not {first}.mode.recording{others}:
        return None
    {plain}
    __made = __find({types})
    __result = None if __made is None else __made({given}, None)
    if __result is None or not __flows:
        return __result
    __key = __cpu if type(__result) is __ndarray else __key_of(__result)
    return __notes(__key).note({first}.mode, __result, {all})
"""


class Notes:
    """The facts that calls of an op share: its derivative for a device key, and what that reads. `mask` has a bool for
    each argument that may have a gradient: whether it is watched."""

    def __init__(self, op, key, mask):
        self.op, self.mask, self.derivative = op, mask, derive.derivative(op, key)
        self.places = list(zip(op.derived, mask))
        self.usual = [None if argument.value is REQUIRED else argument.value for argument in op.arguments]
        self.lists = any(op.arguments[i].type.is_list for i in op.derived)
        read, rows = derive.read(op, self.derivative, mask), list(enumerate(zip(op.names, op.converters)))
        self.arrays = [(i, name, name in read) for i, (name, convert) in rows if convert is None]
        self.words = [(i, convert) for i, (name, convert) in rows if convert is not None and name in read]
        self.reads_result = "result" in read

    def values(self, counted, args):
        """The arguments of a call as its derivative reads them, kept as they are now; see `keep`. What it does not read
        tells its layout."""
        values = list(args)
        for i, name, read in self.arrays:
            x = values[i]
            if read and x is not None:
                x = keep(x, name, counted)
            elif type(x) is Watched:
                x = x.value
            elif x is not None:
                x = x.view() if type(x) is ndarray else bare(x)
            values[i] = tuple(x) if type(x) is list else x
        for i, convert in self.words:
            if values[i] is not None:
                values[i] = convert(self.op.schema.name, values[i])
        return values

    def note(self, tape, result, *args):
        """The result of a call, watched."""
        seen, counted = tape.seen(result, self.op.output_differentiability), []
        values, several = self.values(counted, args), isinstance(seen, LISTS)
        result = keep(seen, "its result", counted) if self.reads_result else None
        if self.lists:
            inputs = numbers(flat([args[i] for i in self.op.derived]))
        else:
            inputs = [args[i].number if keep else None for i, keep in self.places]
        pull = partial(self.back, values, counted, result, several)
        tape.steps.append((pull, inputs, numbers(seen if several else (seen,))))
        return seen

    @classmethod
    def of(cls, op, key, mask):
        """Those that are kept, or new ones."""
        return op.table.kept((key, mask), cls, op, key, mask)

    def back(self, args, counted, result, several, *grads):
        """The gradients of a call's tensor arguments, None where mask is False: that one is not watched."""
        op = self.op
        if counted:
            check(op.schema.name, counted)
        found = on_views.gradients(op, self.derivative, grads if several else grads[0], args, self.mask, result)
        if not self.lists:
            return found
        parts = []
        for i, part in zip(op.derived, found, strict=True):
            if isinstance(args[i], LISTS):
                parts += [None] * len(args[i]) if part is None else part
            else:
                parts.append(part)
        return parts


def noted(tape, op, key, args, result):
    """The result of any call, watched."""
    if op.output_differentiability is False:
        return result
    mask = tuple([any(type(x) is Watched for x in flat((args[i],))) for i in op.derived])
    return Notes.of(op, key, mask).note(tape, result, *args)


def noting(op, types, fast, again):
    """The fast path of calls on arrays that a tape watches: they are made by that of what is inside, and noted."""
    if not op.structured or op.derived != op.keyed:
        return None
    if any(issubclass(each, Traced) and each is not Watched for each in types):
        return None
    if derive.derivative(op, keys.CPU).reason == keys.COMPOSITE_IMPLICIT:  # its parts are noted
        return None
    names, mask = list(map(parameter, op.names)), tuple([each is Watched for each in types])
    watched = [names[i] for i, keep in zip(op.keyed, mask) if keep]
    inside = {name: f"__{name}" for name in watched}
    usual = [name for i, name in enumerate(names) if i not in op.rare]
    first, kinds = function.key_text([f"type({inside.get(names[i], names[i])})" for i in op.keyed])
    text = NOTED.format(
        names=", ".join(usual),
        first=watched[0],
        others="".join(f" or {name}.mode is not {watched[0]}.mode" for name in watched[1:]),
        plain="\n    ".join([*(f"__{name} = {name}.value" for name in watched), *first]),
        types=kinds,
        given=", ".join(inside.get(name, name) for name in usual),
        all=", ".join(name if name in usual else "None" for name in names),
    )
    scope = dict(__find=op.entries.get, __flows=op.output_differentiability, __cpu=keys.CPU, __ndarray=ndarray,
                 __key_of=lambda result: arrays.adapter_for(result).device(result).key,
                 __notes=lambda key: Notes.of(op, key, mask))  # fmt: skip
    exec(compile(text, f"<nbkernels.autograd.notes {op.schema.full_name}>", "exec"), scope)
    return scope["noted"]
