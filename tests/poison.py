"""A plugin of pytest: the rooms that compiled calls take on the stack begin with other bytes than zeros.

    NBKERNELS_CACHE_DIR=an empty directory python -m pytest -p tests.poison tests/calls/test_explain.py

A word that is read before it is written is 0 more often than not, and what depends on it is right by luck. Here every
second word, by chance, is a random number; TESTS_POISON is the seed.
"""

import os

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from nbkernels.jit.abi import address
from nbkernels.jit.compile.lazy import intrinsic

SEED = int(os.environ.get("TESTS_POISON", "0"))
BYTE, I64 = ir.IntType(8), ir.IntType(64)


def poison(size: int) -> bytearray:
    rng, count = np.random.default_rng(SEED + size), -(-size // 8)
    return bytearray((rng.integers(1, 1 << 62, count) * rng.integers(0, 2, count)).tobytes()[:size])


@intrinsic
def scratch(typing, size):
    """As nbkernels.jit.abi.address.scratch."""

    def emit(context, builder, signature, args):
        kind = ir.ArrayType(BYTE, signature.args[0].literal_value)
        with builder.goto_entry_block():
            room = builder.alloca(kind)
        room.align = 64
        source = cgutils.global_constant(builder, "poison", ir.Constant(kind, poison(kind.count)))
        to, source = (builder.bitcast(each, BYTE.as_pointer()) for each in (room, source))
        cgutils.raw_memcpy(builder, to, source, I64(kind.count), 1)
        return builder.ptrtoint(room, I64)

    return (types.int64(size), emit) if isinstance(size, types.IntegerLiteral) else None


address.scratch = scratch
