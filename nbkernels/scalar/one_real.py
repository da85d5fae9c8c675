"""Operations of one on floats: special values as NumPy's, which are C's and IEEE 754's."""

import builtins
import math

import numpy as np

from ..elementary.circular import acos as _acos
from ..elementary.circular import asin as _asin
from ..elementary.circular import atan as _atan
from ..elementary.circular import cos as _cos
from ..elementary.circular import cos_plain as _cos_plain
from ..elementary.circular import sin as _sin
from ..elementary.circular import sin_plain as _sin_plain
from ..elementary.circular import tan as _tan
from ..elementary.circular import tan_plain as _tan_plain
from ..elementary.hyperbolic import acosh as _acosh
from ..elementary.hyperbolic import asinh as _asinh
from ..elementary.hyperbolic import atanh as _atanh
from ..elementary.hyperbolic import cbrt as _cbrt
from ..elementary.hyperbolic import cosh as _cosh
from ..elementary.hyperbolic import sinh as _sinh
from ..elementary.real import bits, helper
from ..elementary.real import floor as _floor
from ..elementary.transcendental import exp as _exp
from ..elementary.transcendental import exp2 as _exp2
from ..elementary.transcendental import expm1 as _expm1
from ..elementary.transcendental import log as _log
from ..elementary.transcendental import log1p as _log1p
from ..elementary.transcendental import log2 as _log2
from ..elementary.transcendental import log10 as _log10
from ..elementary.transcendental import tanh as _tanh

magnitude = builtins.abs


def abs(x, _):
    return magnitude(x)


def sign(x, _):
    """-1, 0 or 1; NaN of NaN."""
    return x if x != x else (1.0 if x > 0 else -1.0 if x < 0 else 0.0)


def signbit(x, _):
    return bits(x) < 0


def isinf(x, _):
    return magnitude(x) == np.inf


def isfinite(x, _):
    return magnitude(x) < np.inf


def reciprocal(x, _):
    return 1 / x


def sqrt(x, _):
    return math.sqrt(x)


def floor(x, _):
    """The largest whole number up to x, of x's sign. LLVM would compute a bare floor of halves one by one."""
    return math.copysign(_floor(x), x)


def ceil(x, _):
    return -_floor(-x)


def trunc(x, _):
    return math.copysign(_floor(magnitude(x)), x)


def _rounded(real, whole):
    """round of floats that are whole numbers from `whole` on."""
    whole = real(whole)

    def round(x, _):
        """The nearest whole number, of two the even one."""
        size = magnitude(x)
        return math.copysign((size + whole) - whole if size < whole else size, x)

    return round


round, round_float64 = _rounded(np.float32, 2.0**23), helper(_rounded(np.float64, 2.0**52))


def exp(x, _):
    return _exp(x)


def exp2(x, _):
    return _exp2(x)


def expm1(x, _):
    return _expm1(x)


def log(x, _):
    return _log(x)


def log2(x, _):
    return _log2(x)


def log10(x, _):
    return _log10(x)


def log1p(x, _):
    return _log1p(x)


def cbrt(x, _):
    return _cbrt(x)


def sin(x, _):
    return _sin(x)


def cos(x, _):
    return _cos(x)


def tan(x, _):
    return _tan(x)


def sin_plain(x, _):
    return _sin_plain(x)


def cos_plain(x, _):
    return _cos_plain(x)


def tan_plain(x, _):
    return _tan_plain(x)


def asin(x, _):
    return _asin(x)


def acos(x, _):
    return _acos(x)


def atan(x, _):
    return _atan(x)


def sinh(x, _):
    return _sinh(x)


def cosh(x, _):
    return _cosh(x)


def tanh(x, _):
    return _tanh(x)


def asinh(x, _):
    return _asinh(x)


def acosh(x, _):
    return _acosh(x)


def atanh(x, _):
    return _atanh(x)
