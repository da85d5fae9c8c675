"""GemmProblem: the sizes, dtype and layout of a product, as numbers; nothing about how it is computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CLASSES = ("square", "tall", "wide", "deep", "flat")
LAYOUTS = ("NN", "NT", "TN", "TT")
LONG = 4  # times as long as another size: what makes a shape another class


def shape_class(m, n, k):
    """Where the class of an m x k by k x n product stands in CLASSES: what tiles are tuned for. deep: many steps of k
    for each row and column, flat: few; tall: many more rows than columns, wide: columns than rows.

    >>> [CLASSES[shape_class(*s)] for s in ((9, 9, 9), (40, 9, 9), (9, 40, 9), (9, 9, 40), (40, 40, 9))]
    ['square', 'tall', 'wide', 'deep', 'flat']
    """
    if k >= LONG * max(m, n):
        return 3
    if m >= LONG * n:
        return 1
    if n >= LONG * m:
        return 2
    return 4 if LONG * k <= min(m, n) else 0


def slot(m, n, k, left, right, turned):
    """Class and layout in one number: 4 * class + 2 * left + right, of matrices whose columns are contiguous (1) or
    not (0); `turned`, of C' = B' A', which is what runs where C is stored by columns.

    >>> slot(40, 9, 9, 0, 1, 0), slot(9, 40, 9, 0, 1, 1)
    (5, 5)
    """
    if turned:
        m, n, left, right = n, m, 1 - right, 1 - left
    return 4 * shape_class(m, n, k) + 2 * left + right


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
