"""A matrix as compiled code passes it on: its address, and its strides down and across, in elements.
The address is 0 where there is no matrix."""

from __future__ import annotations

from ...jit.compile.lazy import jit


@jit(forceinline=True)
def sub(matrix, i, j, size):
    """The matrix from row i and column j on, of elements of so many bytes."""
    address, down, across = matrix
    return address + (i * down + j * across) * size if address != 0 else 0, down, across


@jit(forceinline=True)
def matrices(f):
    """A, B, C and X of a product's words."""
    return (f.a, f.rsa, f.csa), (f.b, f.rsb, f.csb), (f.c, f.rsc, f.csc), (f.x, f.rsx, f.csx)
