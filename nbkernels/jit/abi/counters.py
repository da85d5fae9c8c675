"""Counters in memory that compiled code of several threads adds to."""

from __future__ import annotations

from ..compile.lazy import intrinsic, types
from .address import words as pointed


def _atomic(operation):
    @intrinsic
    def change(typing, words, index, value):
        def emit(context, builder, signature, args):
            builder.atomic_rmw(operation, builder.gep(args[0], [args[1]]), args[2], "monotonic")
            return context.get_dummy_value()

        return types.void(pointed(), types.int64, types.int64), emit

    return change


add_to, set_in = _atomic("add"), _atomic("or")  # words[index] += value, |= value, seen by all threads
