"""A product that ends in a scalar function, in the store of its kernel from compute capability 8.0 on.

There out, and the product too where that is kept, are written once and nothing is read again; elsewhere the function
goes over the whole product. Both have the same bits: the function takes the product rounded to its dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..elementary import activations
from . import fused
from .elementwise import apart, apply, is_array, number
from .gemm import gemm
from .memory import clash, empty
from .product.end import End, Ending
from .product.matrix import Matrix


@dataclass(frozen=True, eq=False)
class After:
    """out = function(product, *operands), of a product in `dtype`; operands expand to out, or are numbers.

    `computed` is what the function is compiled for, `takes` are the dtypes of its arguments, `result` that of its
    value. The product is stored in `before`, too, where that is an array.
    """

    function: Callable
    computed: str
    dtype: str
    takes: list[str]
    result: str
    operands: tuple = ()
    before: object = None

    def fits(self, arrays) -> bool:
        """Whether a kernel may store `before` while it reads these arrays."""
        return self.before is None or not any(clash(self.before, x) for x in arrays if x is not None)

    def ending(self, out) -> Ending:
        """This at the end of a kernel that writes out."""
        dtypes = [(x.dtype.name, name) if is_array(x) else (name,) for x, name in zip(self.operands, self.takes[1:])]
        read = [apart([out], x) for x in self.operands if is_array(x)]
        stored = [] if self.before is None else [self.before]
        arrays = tuple(Matrix.of(x, out.shape) for x in (*stored, *read))
        numbers = tuple(number(x, np.dtype(name)) for x, name in zip(self.operands, self.takes[1:]) if not is_array(x))
        ends = (out.dtype.name, self.result)
        end = End(self.function, self.computed, self.takes[0], ends, tuple(dtypes), bool(stored))
        return Ending(end, arrays, numbers)

    def room(self, out):
        """Where the product goes before the function goes over it."""
        if self.before is not None:
            return self.before
        own = out.dtype.name == self.dtype and not any(clash(out, x) for x in self.operands if is_array(x))
        return out if own else empty(out.shape, out, np.dtype(self.dtype))

    def over(self, out, product) -> None:
        """The function over the whole product."""
        apply(self.function, self.computed, [out], [product, *self.operands], self.takes, [self.result])


def run(function, out, before, dtype, x, a, b, operands, how) -> None:
    """out = function(product, *operands), product = alpha * a @ b + beta * x of `dtype`, which is stored in `before` if
    that is given. `how`: beta, alpha, mode, conj and tiles.

    All checks are done, and `before` shares no memory with out and operands.
    """
    made = fused.adopted(function, (dtype, *(each.dtype for each in operands)))
    operands = tuple(fused.given(operands, out))
    (result,) = made.results
    after = After(made.function, made.dtype, dtype.name, made.takes, result, operands, before)
    gemm(out, x, a, b, **how | dict(conj=how["conj"] or ""), after=after)


def addmm_activation(
    out, self, mat1, mat2, beta, alpha, activation, approximate, out_dtype=None, mode=None, tiles=None
) -> None:
    """out = activation(beta * self + alpha * (mat1 @ mat2))."""
    name, dtype = activation if approximate == "none" else f"{activation}_{approximate}", out.dtype.name
    after = After(getattr(activations, name), fused.compiled_for([dtype]), dtype, [dtype], dtype)
    gemm(out, self, mat1, mat2, beta, alpha, tiles, "", mode, after)
