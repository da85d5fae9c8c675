"""Rows of products of complex numbers, as vectors in which real and imaginary parts stay side by side.

    (xr, xi) * (yr, yr) -/+ (xi, xr) * (yi, yi)

LLVM would take the parts of several numbers apart and put them together again: products of 10,000 of complex64 go at
.75 of NumPy's speed so, at 1.1 here (AVX2). Which part of a result comes first in its sum shows in the kind of a NaN.
"""

from __future__ import annotations

from llvmlite import ir

from ...jit.ir.vector import I32, I64, Lanes, loop, width_bits
from ...scalar import complexes
from .lines import LIGHT

REAL = {"complex64": "float32", "complex128": "float64"}


def known(spec, steps, widths) -> bool:
    """Whether these are such rows, neighbours of one dtype or the same for all."""
    one = len({*spec.outputs, *spec.inputs, *spec.compute}) == 1 and spec.output in REAL
    plain = not (spec.masked or spec.faults or spec.chained or spec.scalars)
    plain = plain and spec.function is complexes.multiply
    return width_bits() < 512 and one and plain and all(step in (0, w) for step, w in zip(steps, widths))


def products(emitter, base, steps, head):
    """Whole vectors from column `head` on; the column that they end at."""
    builder = emitter.builder
    vectors = Lanes(builder, REAL[emitter.spec.output], 2 * LIGHT // emitter.widths[0])
    numbers, every = I64(vectors.count // 2), range(vectors.count)

    def picked(x, places, y=None):
        return builder.shuffle_vector(x, x if y is None else y, ir.Constant(ir.VectorType(I32, len(places)), places))

    def loaded(p, column):
        few = vectors if steps[p] else Lanes(builder, vectors.dtype, 2)
        address = builder.bitcast(emitter.at(base, steps, p, column), few.element.as_pointer())
        value = few.load(address)
        value.set_metadata("noalias", emitter.scope)
        return value if steps[p] else picked(value, [i % 2 for i in every])

    def product(x, y):
        by_real = builder.fmul(x, picked(y, [i & -2 for i in every]))
        by_imaginary = builder.fmul(picked(x, [i ^ 1 for i in every]), picked(y, [i | 1 for i in every]))
        less, more = builder.fsub(by_real, by_imaginary), builder.fadd(by_real, by_imaginary)
        return picked(less, [i + i % 2 * vectors.count for i in every], more)

    def step(q, _):
        column = builder.add(head, builder.mul(q, numbers))
        result = product(loaded(1, column), loaded(2, column))
        emitter.store(result, builder.bitcast(emitter.at(base, steps, 0, column), result.type.as_pointer()))
        return []

    trips = builder.udiv(builder.sub(emitter.columns, head), numbers)
    loop(builder, trips, [], step)
    return builder.add(head, builder.mul(trips, numbers))
