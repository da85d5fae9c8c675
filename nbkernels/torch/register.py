"""Every op of the table, told to torch: kernels, shapes, derivatives, batches, autocast.

An op is registered when it is first looked up in `torch.ops.nbkernels`: all of them together take most of a second.
"""

from __future__ import annotations

import threading
from functools import partial

import torch

from .. import ops
from . import autograd, batches, forms, forward, gradients
from .autocast import LOWER, lowered
from .kernels import fake_of, kernel_of

LIBRARY = torch.library.Library(forms.NAMESPACE, "DEF")
DEVICES = "CPU", "CUDA"
TAGS = tuple(getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "needs_exact_strides")
             if hasattr(torch.Tag, name))  # fmt: skip


def define(form, kernel, fake):
    LIBRARY.define(str(form.schema), tags=TAGS)
    for device in DEVICES:
        LIBRARY.impl(form.name, kernel, device)
    torch.library.register_fake(f"{forms.NAMESPACE}::{form.name}", fake, lib=LIBRARY)


def differentiate(form, kernel):
    LIBRARY.impl(form.name, kernel, "Autograd", with_keyset=True)


def batch(form, rule):
    torch.library.register_vmap(f"{forms.NAMESPACE}::{form.name}", rule, lib=LIBRARY)


# -- all of them ------------------------------------------------------------------------------------------------------


def register(op):
    """All but the batches of its forms, which are returned with their rules: for them torch looks the ops up."""
    batched = []
    for form in forms.forms(op, ops.OPERATIONS):
        define(form, kernel_of(form), fake_of(form))
        if form.written:
            differentiate(form, autograd.of_writing(form))
            continue
        batched.append((form, batches.rule(form)))
        if op.schema.name in LOWER:
            for device in DEVICES:
                LIBRARY.impl(form.name, lowered(form, device.lower()), f"Autocast{device}")
        if op.output_differentiability is False:
            differentiate(form, autograd.of_flat(form))
            continue
        once, twice = gradients.kernels(form)
        behind = forms.backward(form)
        last = forms.twice_backward(behind)
        define(behind, *once)
        define(last, *twice)
        differentiate(form, autograd.kernel(form, autograd.of_call(form), partial(forward.of_call, form)))
        differentiate(behind, autograd.kernel(behind, autograd.of_backward(form), partial(forward.of_backward, form)))
        differentiate(last, autograd.kernel(last, autograd.of_twice_backward(form)))
        batched += [(derived, batches.one_by_one(derived)) for derived in (behind, last)]
    return batched


def names(op):
    """What torch calls an op and what is derived from it."""
    name = op.schema.name
    written = [op.in_place.schema.name] if op.in_place and op.in_place.schema.name in ops.OPERATIONS else []
    return name, *written, f"{name}_backward", f"{name}_backward_backward"


UNREGISTERED = {name: op for op in ops.LIBRARY for name in names(op)}
UNDER_WAY, LOCK = [], threading.RLock()


class Namespace(type(torch.ops.nbkernels)):
    """`torch.ops.nbkernels`: an op is registered as it is looked up, with all of its forms."""

    __module__ = "torch._ops"  # from there on an op's name is looked up in a compiled graph

    def __getattr__(self, name):
        if name in UNREGISTERED:
            with LOCK:
                op = UNREGISTERED.get(name)
                if op in UNDER_WAY:  # torch asks whether it is there yet
                    raise AttributeError(name)
                if op is not None:
                    self.register(op)
        return super().__getattr__(name)

    @staticmethod
    def register(op):
        UNDER_WAY.append(op)
        try:
            batched = register(op)
        finally:
            UNDER_WAY.remove(op)
        for name in names(op):
            UNREGISTERED.pop(name, None)
        for form, rule in batched:
            batch(form, rule)

    def __dir__(self):
        return sorted({*super().__dir__(), *UNREGISTERED})


torch.ops.nbkernels.__class__ = Namespace
