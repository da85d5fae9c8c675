"""Operations of one on integers: everything wraps. `op_faults` as in integers.py."""

import numpy as np

from .integers import DIVIDE


def abs(x, _):
    return x if x >= 0 else -x


def floor(x, _):
    return x


ceil = trunc = round = floor


def sign(x, _):
    return 1 if x > 0 else -1 if x < 0 else 0


def bitwise_invert(x, _):
    return ~x


def reciprocal(x, _):
    """1 / x, cut to a whole number; 0 of 0, with a warning."""
    return x if x == 1 or x == -1 else 0


def _reciprocal_signed(least):
    def reciprocal(x, _):
        """1 / x, cut to a whole number; the least one of 0, with a warning."""
        return x if x == 1 or x == -1 else least if x == 0 else 0

    return reciprocal


reciprocal_int32, reciprocal_int64 = (_reciprocal_signed(np.iinfo(d).min) for d in (np.int32, np.int64))


def reciprocal_faults(x, _, result):
    return DIVIDE if x == 0 else 0
