"""Activation functions as plain scalar functions of a float: one definition for every device, and for epilogues.

Each works in its argument's dtype, within 4 ulp of the formula where no term cancels another.
"""

from __future__ import annotations

import numpy as np

from .real import F32, F64, Real, generic, kernel
from .transcendental import erf, exp, tanh

__all__ = ["gelu", "gelu_tanh", "relu", "sigmoid", "silu", "tanh"]


@generic
def relu(x):
    """max(x, 0); NaN stays."""


@generic
def sigmoid(x):
    """1 / (1 + exp(-x))."""


@generic
def silu(x):
    """x * sigmoid(x); NaN of -inf, as torch has it."""


@generic
def gelu(x):
    """x/2 * (1 + erf(x / sqrt(2)))."""


@generic
def gelu_tanh(x):
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3))), which approximates gelu."""


def _define(kind: Real):
    real = kind.real
    zero, half, one, root_half = map(real, (0, 0.5, 1, 0.5**0.5))
    scale, cubic = real((2 / np.pi) ** 0.5), real(0.044715)

    @kernel(relu, kind)
    def _relu(x):
        return zero if x < zero else x

    @kernel(sigmoid, kind)
    def _sigmoid(x):
        e = exp(-abs(x))  # at most 1
        return (e if x < zero else one) / (one + e)

    @kernel(silu, kind)
    def _silu(x):
        return x * sigmoid(x)

    @kernel(gelu, kind)
    def _gelu(x):
        return half * x * (one + erf(x * root_half))

    @kernel(gelu_tanh, kind)
    def _gelu_tanh(x):
        return half * x * (one + tanh(scale * (x + cubic * (x * x * x))))


_define(F32)
_define(F64)
