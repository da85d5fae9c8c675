"""Elements of every dtype in kernels: how they lie in memory, what they are computed as, one into the other.

A bool is a byte and a bfloat16 its bits, converted here: Numba has no pointer to bools, and its own bfloat16 calls code
that only its own linker adds. A complex number is two parameters of a kernel (launch.py).
"""

from __future__ import annotations

import functools

from numba import types

from ...dtypes import HALVES
from ...elementary.real import bits, number
from .functions import device, inlined

INT32, UINT16, FLOAT32 = types.int32, types.uint16, types.float32
_bits, _number = (device(function, "float32") for function in (bits, number))


def stored(dtype: str):
    """The type of an element in memory."""
    return getattr(types, {"bool": "uint8", "bfloat16": "uint16"}.get(dtype, dtype))


def computed(dtype: str):
    """The type that an element is computed in."""
    return FLOAT32 if dtype in HALVES else types.boolean if dtype == "bool" else getattr(types, dtype)


@inlined
def _element(x, i):
    return x[i]


@inlined
def truth(x, i):
    return x[i] != 0


@inlined
def always(x, i):
    return True


@inlined
def _float16(x, i):
    return FLOAT32(x[i])


@inlined
def _bfloat16(x, i):
    return _number(INT32(INT32(x[i]) << 16))


def reading(dtype: str):
    """read(x, i): x[i] of a pointer to `stored` elements, as it is computed: Numba makes no bool of a float16."""
    return {"bool": truth, "float16": _float16, "bfloat16": _bfloat16}.get(dtype, _element)


@functools.cache
def writing(dtype: str):
    """write(x, i, value): x[i] = value, rounded to nearest even or modulo 2**bits; a NaN stays one."""
    OUT = stored(dtype)

    @inlined
    def element(x, i, value):
        x[i] = OUT(value)

    @inlined
    def truth(x, i, value):
        x[i] = value != 0

    @inlined
    def bfloat16(x, i, value):
        single = FLOAT32(value)
        whole = INT32(_bits(single))
        rounded = INT32(INT32(whole + INT32(whole >> 16 & 1)) + 0x7FFF) >> 16  # modulo 2**32: of 64 bits it takes twice
        x[i] = UINT16(rounded if single == single else whole >> 16 | 0x40)

    return {"bool": truth, "bfloat16": bfloat16}.get(dtype, element)
