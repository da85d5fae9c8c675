"""GemmProblem: what is multiplied, as numbers; nothing about how."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class GemmProblem:
    """C (m x n) = alpha * A (m x k) @ B (k x n) + beta * X, all of one dtype. `layout` is 'NN', 'NT', 'TN' or 'TT'."""

    m: int
    n: int
    k: int
    dtype: str
    layout: str = "NN"

    @classmethod
    def of(cls, a: np.ndarray, b: np.ndarray) -> GemmProblem:
        """The problem that two 2-D arrays pose. T: the columns are nearer in memory than the rows.

        >>> GemmProblem.of(np.ones((2, 3)), np.ones((4, 3)).T)
        GemmProblem(m=2, n=4, k=3, dtype='float64', layout='NT')
        """
        layout = "".join("T" if abs(x.strides[0]) < abs(x.strides[1]) else "N" for x in (a, b))
        return cls(a.shape[0], b.shape[1], a.shape[1], str(a.dtype), layout)

    def flops(self) -> int:
        """Multiplications and additions: 2 m n k.

        >>> GemmProblem(2, 3, 4, "float32").flops()
        48
        """
        return 2 * self.m * self.n * self.k

    def bytes(self) -> int:
        """Bytes that must move at least once: A, B and C."""
        itemsize = np.dtype(self.dtype).itemsize
        return itemsize * (self.m * self.k + self.k * self.n + self.m * self.n)
