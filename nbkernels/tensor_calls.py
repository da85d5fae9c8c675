"""Fast paths of arrays that lend NumPy their memory: torch tensors on the CPU, subclasses of ndarray.

An op's fast path for NumPy arrays is run on views of them, and what it makes becomes an array of their kind. `tensors`
and `subclasses` get (op, types, fast), the types of the tensor arguments that choose the path, and return a fast path
for them: where that returns None nothing is done, and the general path looks again.
"""

from __future__ import annotations

import functools
import itertools
from importlib import import_module

import numpy as np

from . import background, first_calls
from .dispatch import arrays
from .dispatch.adapter import library
from .threads import LIMITS, own_number

VIEWS = "nbkernels.jit.abi.lend"  # by name, at the first call

# One for each combination of types, as dispatch/function.py makes functions: a loop over the arguments takes 1 us more.
HEAD = """\
def lent({names}, out):
    if {sealed}:
        return None
"""
ON_CUDA = """\
    if {first}.is_cuda:
        return again({names}, out)
"""
LENT = """\
    if {watched}:
        return None
    try:
        {views}
        __out = None if out is None else {reused}{out}
    except REFUSED:
        return None
    {run}
    if __result is None:
        return None
    if out is not None:
        written(out)
        return out
    return {same}given(__result{like})
"""
RUN = "__result = fast({values}, __out)"
# Where torch.set_num_threads says fewer threads than there are.
NARROW = """__before = 0
    if few() < limits[1]:
        __fewer, __number = own_number()
        __before = __fewer(__few := few())
    try:
        if __before:
            __number(__few)
        __result = fast({values}, __out)
    finally:
        if __before:
            __number(__before)"""


def made(
    op, types, fast, scope, view, *, watched="False", like="", out="lend_out(out)", again=None, sealed="False", run=RUN
):
    """The fast path by the text above, which calls what `scope` has; its `with_keywords` is of the same make. `fast` is
    that of arrays on the CPU, `again` that of others; either may be None."""
    usual = {op.names[i]: view.format(op.names[i]) for i, cls in zip(op.keyed, types) if lends(cls)}
    first = next(iter(usual))

    def written(fast, again, names, views):
        own = {name: f"__{name}" for name in views}
        text = HEAD + (ON_CUDA if again else "") + (LENT if fast else "")
        text = text.format(
            names=", ".join(names),
            first=first,
            sealed=sealed,
            watched=watched,
            out=out,
            views="; ".join(f"__{name} = {found}" for name, found in views.items()),
            reused="__self if out is self else " if "self" in views else "",
            run=run.format(values=", ".join(own.get(name, name) for name in names)),
            same=f"{first} if __result is {own[first]} else " if op.aliased is not None else "",
            like=like.format(", ".join(op.names[i] for i in op.keyed)),
        )
        place = scope | {"fast": fast, "again": again}
        exec(compile(text, f"<nbkernels.tensor_calls {op.schema.full_name}>", "exec"), place)
        return place["lent"]

    lent = written(fast, again, [name for i, name in enumerate(op.names) if i not in op.rare], usual)
    keywords, worded = getattr(fast, "with_keywords", None), getattr(again, "with_keywords", None)
    if keywords is not None or worded is not None:
        others = {op.names[i]: f"lend_one({op.names[i]})" for i in op.tensors if i in op.rare}
        lent.with_keywords = written(keywords, worded, op.names, usual | others)
    return lent


def lends(cls) -> bool:
    adapter = arrays.adapter_of(cls)
    return adapter is not None and adapter.lends(cls)


# -- subclasses of ndarray --------------------------------------------------------------------------------------------


def subclasses(op, types, fast, again):
    """Of ndarray itself, its subclasses and memmaps. The result is of the class that the general path gives it: that of
    the first operand or, for element-wise ops, of the first that has dimensions."""
    classes = {cls for cls in types if issubclass(cls, np.ndarray | np.generic)}
    if all(issubclass(cls, np.memmap | np.generic) or cls is np.ndarray for cls in classes):
        like, given = "", as_it_is
    else:
        like, given = ", {}", as_lead if len(classes) > 1 and op.elementwise else as_first
    scope = dict(lend=plain_one, lend_one=plain_one, lend_out=plain_out, given=given, written=id, ndarray=np.ndarray,
                 REFUSED=TypeError)  # fmt: skip
    return made(op, types, fast, scope, view="{0}.view(ndarray)", like=like)


def as_it_is(result):
    return result


def as_first(result, first, *others):
    """Of the first array's class."""
    like = first if isinstance(first, np.ndarray) else next(x for x in others if isinstance(x, np.ndarray))
    return result if type(like) is np.ndarray else arrays.adapter_of(type(like)).result(np.asarray(result), like)


def as_lead(result, *operands):
    """Of the class of the first array that has dimensions."""
    operands = [x for x in operands if isinstance(x, np.ndarray | np.generic)]
    like = next((x for x in operands if x.ndim), operands[0])
    return as_first(result, like) if isinstance(like, np.ndarray) else result


def plain_one(x):
    return x.view(np.ndarray) if isinstance(x, np.ndarray) and lends(type(x)) else x


def plain_out(x):
    if type(x) is np.ndarray or (isinstance(x, np.ndarray) and lends(type(x))):
        return x.view(np.ndarray)
    raise TypeError


# -- torch ------------------------------------------------------------------------------------------------------------

# What sees calls but for the tensors' own flags: torch.jit.trace, modes (make_fx, FakeTensorMode), forward_ad. A look
# takes 50 ns.
WATCHED = "tracing() or modes() or forward._current_level >= 0"
# x.numpy() takes 0.9 us, and is what `lend` asks.
VIEW = (
    "lend({0}) if {0}.is_neg() or ({0}.requires_grad and grad_is_on()) "
    "else __view if type(__view := view(words, {0})) is ndarray else lend({0})"
)
OUT = "({}) if type(out) is Tensor else lend(out)"
SEALED = "out is not None and flaw(out)"


@functools.cache
def flaw():
    """A function: why an out that is a tensor cannot be written, or ""."""
    torch, adapter = library("torch"), arrays.adapter_of(library("torch").Tensor)
    return lambda out: isinstance(out, torch.Tensor) and adapter.flaw(out)


@functools.cache
def of_torch():
    """What the fast paths of tensors call, and how they get a view; None where this torch lacks a part of it."""
    torch = library("torch")
    own, adapter, from_numpy, bfloat16 = torch._C, arrays.adapter_of(torch.Tensor), torch.from_numpy, torch.bfloat16
    try:
        seen = dict(tracing=own._is_tracing, modes=own._len_torch_dispatch_stack, forward=torch.autograd.forward_ad)
        inside = own._functorch.maybe_current_level
        assert type(seen["forward"]._current_level) is int
    except (AttributeError, AssertionError):
        return None
    grad_is_on, numpy = torch.is_grad_enabled, torch.Tensor.numpy

    def lend(x):
        """The view as torch makes it, which refuses what is more than memory."""
        if not lends(type(x)) or inside() is not None or adapter.nowhere(x):
            raise TypeError
        x = x.detach() if x.requires_grad and not grad_is_on() else x
        return adapter.raw(x) if x.dtype is bfloat16 else numpy(x)

    def lend_one(x):
        return lend(x) if isinstance(x, torch.Tensor) else x

    def given(result):
        result = result if type(result) is np.ndarray else np.asarray(result)
        if result.dtype.kind == "V":
            return from_numpy(result.view(np.int16)).view(bfloat16)
        return from_numpy(result)

    scope = dict(
        few=torch.get_num_threads,
        limits=LIMITS,
        own_number=own_number,
        lend=lend,
        lend_one=lend_one,
        given=given,
        grad_is_on=grad_is_on,
        ndarray=np.ndarray,
        Tensor=torch.Tensor,
        REFUSED=(RuntimeError, TypeError),
        written=torch.autograd.graph.increment_version,
        flaw=flaw(),
        **seen,
    )
    views = import_module(VIEWS)
    try:
        others = (adapter.dtype(bfloat16),)
    except TypeError:  # without ml_dtypes
        others = ()
    usual = _usual(**seen, few=scope["few"], flaw=scope["flaw"])
    told = views.lender(torch.Tensor, others, given, scope["written"], usual, "requires_grad", "is_neg")
    if told is None:
        return scope, "lend({0})"
    lender, kept = told
    return scope | dict(words=lender.buffer_info()[0], view=views.view_entry(), lender=lender, kept=kept), VIEW


OTHERS = frozenset((bool, int, float, complex, str, tuple))  # arguments of a call that are no arrays


def array_of(x):
    """A tensor in the CPU's memory as NumPy's array, which keeps it alive; None, a number or a word is itself. A
    TypeError of anything else."""
    if x is None or type(x) in OTHERS:
        return x
    torch = library("torch")
    if not lends(type(x)) or not isinstance(x, torch.Tensor) or not x.is_cpu or x.layout is not torch.strided:
        raise TypeError
    x = x.detach().resolve_conj().resolve_neg()
    return arrays.adapter_of(torch.Tensor).raw(x) if x.dtype is torch.bfloat16 else x.numpy()


def tensor_of(x, others=()):
    """An array as a tensor: of a copy where it shares memory with one of the others, or has no such strides."""
    x = np.asarray(x)
    owned = x.base is None and not any(x is y for y in others)
    shares = not owned and any(isinstance(y, np.ndarray) and np.may_share_memory(x, y) for y in others)
    x = x.copy(order="K") if shares or min(x.strides, default=0) < 0 else x
    torch = library("torch")
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if x.dtype.kind == "V" else torch.from_numpy(x)


@functools.cache
def viewer():
    """A function of tensors: NumPy's view, which does not keep them alive; None of what is no tensor, is more than
    memory, or requires grad while grad is on."""
    found = of_torch()
    if found is None:
        return lambda x: None
    scope, view = found
    text = f"def seen(x):\n    try:\n        return {view.format('x')}\n    except REFUSED:\n        return None"
    exec(text, scope := scope | {"REFUSED": (*scope["REFUSED"], AttributeError)})
    return scope["seen"]


def tensors(op, types, fast, again):
    """Of tensors on the CPU and numbers. What requires grad while grad is on, lazy conjugates, sparse tensors and their
    like refuse to be NumPy's, and the general path says why. Without `fast` of those on a CUDA device alone."""
    if fast is None:
        return made(op, types, None, {"flaw": flaw()}, "{0}", again=again, sealed=SEALED)
    found = of_torch()
    if found is None:
        return None
    scope, view = found
    out = OUT.format(view.format("out"))
    plain = all(cls is library("torch").Tensor for cls in types if lends(cls))
    usual, watched = view == VIEW and op.structured and plain and again is None, WATCHED
    if usual and not import_module(VIEWS).at_hand():
        scope |= dict(calls=itertools.count(1), many=first_calls.CALLS + 1, ask=functools.partial(_ask, op))
        watched = f"(next(calls) == many and ask()) or {WATCHED}"
    path = made(op, types, fast, scope, view, watched=watched, out=out, again=again, sealed=SEALED, run=NARROW)
    if usual:
        path.quick = functools.partial(_quick, fast, path, scope["lender"])
    return path


def _usual(tracing, modes, forward, few, flaw, limits=LIMITS):
    """A function of out: whether a call is no one's to see, may have the threads that there are, and can write it."""

    def usual(out):
        watched = tracing() or modes() or forward._current_level >= 0
        return not watched and few() >= limits[1] and (out is None or not flaw(out))

    return usual


def _ask(op) -> None:
    """Calls of an op with tensors are no first ones any more: have their compiled function soon."""
    views = import_module(VIEWS)
    background.done(f"{op.schema.full_name} of tensors", lambda: (views.lent_entry(), op.forget()))


def _quick(fast, path, lender):
    """The compiled function of tensors that calls `fast`, or its compiled entry, and `path` for unusual calls; None
    where it would have to be compiled for a first call."""
    views = import_module(VIEWS)
    if not views.at_hand():
        return None
    entry = fast.direct() if hasattr(fast, "direct") else None
    return views.compiled_call(entry or fast, fast, path, lender)
