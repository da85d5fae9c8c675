"""The public functions of nbkernels.torch.
A call that nothing but autograd watches is made at once, by the torch op's kernel and node of autograd; the others go
through torch's dispatcher, which takes 20 to 40 us longer to get there.
"""

from __future__ import annotations

import functools

import torch
from torch.autograd import forward_ad

from .. import ops
from ..dispatch.schema import REQUIRED
from ..methods import FIRST, chosen
from . import forms
from .autocast import LOWER
from .autograd import of_call
from .kernels import kernel_of

NUMBERS = frozenset((bool, int, float, complex))
ALONE = frozenset((torch.Tensor,))
TENSORS = ALONE | {torch.nn.Parameter}
NOTHING = frozenset((type(None),))
OTHERS = {"ScalarType": NOTHING | {torch.dtype}, "str": NOTHING | {str}}
compiling, grad_is_on, tracing = torch.compiler.is_compiling, torch.is_grad_enabled, torch._C._is_tracing
modes, functions, casting = (
    torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack, torch._C._is_any_autocast_enabled,
)  # fmt: skip
transforms, unwrapped = torch._C._functorch.maybe_current_level, torch._C._functorch.unwrap_if_dead


def watched():
    """Whether anything sees the calls of torch's dispatcher: modes, torch.func, forward_ad, torch.jit.trace."""
    return modes() or functions() or transforms() is not None or forward_ad._current_level >= 0 or tracing()


def types_of(argument, op):
    """The types that an argument has in plain calls."""
    if argument.type.base != "Tensor":
        return OTHERS.get(argument.type.base, NUMBERS | NOTHING | {tuple, list})
    numbers = op.elementwise and argument.name in ("self", "other")
    return TENSORS | (NUMBERS if numbers else NOTHING if argument.type.optional else frozenset())


def bare_apply(node):
    """Function.apply without what it does for torch.func, but for tensors of a transform that is over: `unwrapped`."""
    return super(torch.autograd.Function, node).apply


class Plain:
    """An op's calls that need no dispatcher: of tensors in the CPU's memory that nothing but autograd watches."""

    def __init__(self, op):
        self.forms = {form.schema.overload: form for form in forms.forms(op, ()) if not form.written}
        self.kernels = {overload: kernel_of(form) for overload, form in self.forms.items()}
        self.nodes, self.flat, self.casts = {}, op.output_differentiability is False, op.schema.name in LOWER
        arguments = self.forms[""].schema.arguments
        placed = [a for a in arguments if not a.keyword_only]
        self.placed = [(a.name, types_of(a, op)) for a in placed]
        self.named = {a.name: types_of(a, op) for a in arguments if a.keyword_only}
        self.fill = tuple(None if a.value is REQUIRED else a.value for a in placed)
        self.required = sum(a.value is REQUIRED for a in placed)
        self.pair = len(self.forms) > 1
        usual = [a for i, a in enumerate(op.arguments) if i not in op.rare]
        leads = [i for i, a in enumerate(usual) if a.value is REQUIRED] == list(range(self.required)) == op.keyed
        self.count, self.find = self.required if leads and op.aliased is None else -1, op.entries.get
        self.rest = *(a.value for a in usual[self.required :]), None

    def at_once(self, args):
        """The result of required tensors alone, none of which requires grad, by the fast path of nbkernels' op; None,
        with nothing done, of other calls."""
        if len(args) != self.count or {*map(type, args)} != ALONE or watched() or (self.casts and casting()):
            return None
        if grad_is_on():
            for x in args:
                if x.requires_grad:
                    return None
        fast = self.find(torch.Tensor)
        return fast and fast(*args, *self.rest)

    def call(self, args, keywords):
        """The result; None, with nothing done, of a call that is not plain."""
        if watched() or (self.casts and casting()):
            return None
        if keywords and not keywords.keys() <= self.named.keys():
            args, keywords = self.by_place(args, keywords)
        if not self.required <= len(args) <= len(self.placed):
            return None
        tensors, needs = 0, False
        for x, (_, types) in zip(args, self.placed):
            kind = type(x)
            if kind not in types:
                return None
            if kind in TENSORS:
                if not x.is_cpu or x.is_conj() or x.is_neg():
                    return None
                tensors += 1
                needs = needs or x.requires_grad
        if not tensors or (keywords and any(type(x) not in self.named.get(name, ()) for name, x in keywords.items())):
            return None
        which = ""
        if self.pair and tensors == 1:
            which = "ScalarSelf" if type(args[0]) in NUMBERS else "Scalar" if type(args[1]) in NUMBERS else ""
        if not (needs and grad_is_on()):
            return self.kernels[which](*args, **keywords)
        if self.flat:
            with torch.no_grad():
                return self.kernels[which](*args, **keywords)
        apply = self.nodes.get(which) or self.nodes.setdefault(which, bare_apply(of_call(self.forms[which])))
        args = [unwrapped(x) if type(x) in TENSORS else x for x in args]
        return apply(None, keywords, 0, *args, *self.fill[len(args) :])

    def by_place(self, args, keywords):
        """Arguments with those that are named and have a place at theirs; what is wrong with them stays."""
        keywords, rest = dict(keywords), self.placed[len(args) :]
        last = max((i for i, (name, _) in enumerate(rest, 1) if name in keywords), default=0)
        fill = self.fill[len(args) :]
        return (*args, *(keywords.pop(name, fill[i]) for i, (name, _) in enumerate(rest[:last]))), keywords


@functools.cache
def plain(name):
    return Plain(ops.LIBRARY[name])


def public(name):
    """The function of an op: as nbkernels has it, of tensors."""
    namespace = torch.ops.nbkernels
    if name.endswith("_"):

        def function(self, *args, **keywords):
            getattr(namespace, name)(self, *args, **{forms.renamed(key): x for key, x in keywords.items()})
            return self
    else:

        def function(*args, out=None, **keywords):
            if out is not None:
                given = {forms.renamed(key): x for key, x in keywords.items()}
                getattr(namespace, name)(*args, **given, out=out)
                return out
            result = None
            if not compiling():
                op = plain(name)
                result = None if keywords else op.at_once(args)
                result = op.call(args, keywords) if result is None else result
            return getattr(namespace, name)(*args, **keywords) if result is None else result

    function.__name__ = function.__qualname__ = name
    function.__module__ = "nbkernels.torch"
    function.__doc__ = getattr(ops, name).__doc__
    if hasattr(getattr(ops, name), "accumulate"):
        function.reduce, function.accumulate = reduce_of(name), accumulate_of(name)
        for method in (function.reduce, function.accumulate):
            method.__qualname__, method.__module__ = f"{name}.{method.__name__}", function.__module__
    return function


def reduce_of(name):
    def reduce(self, axis=FIRST, dtype=None, keepdims=False, initial=None, where=None, *, dim=None, keepdim=None):
        axis, keepdims = chosen(f"{name}.reduce", FIRST, axis, keepdims, dim, keepdim)
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        named = dict(keepdims=keepdims, initial=initial, dtype=dtype)
        return torch.ops.nbkernels.reduce(self, name, list(axes), where, **named)

    return reduce


def accumulate_of(name):
    def accumulate(self, axis=FIRST, dtype=None, *, dim=None):
        axis, _ = chosen(f"{name}.accumulate", FIRST, axis, False, dim, None)
        return torch.ops.nbkernels.accumulate(self, name, [axis], dtype=dtype)

    return accumulate


FUNCTIONS = {name: public(name) for name in ops.OPERATIONS}
