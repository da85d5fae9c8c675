"""The layout of quantised weights in memory: blocks of WIDTH outputs, side by side. NumPy alone."""

from __future__ import annotations

import numpy as np

WIDTH = 16  # outputs of a block: a vector of float32, of the widest that there are
ITEMS = {"int8": 4, "int4": 8}  # in a word of 32 bits
BYTES = 4  # of a word
OFFSETS = {"int8": 0x80808080 - (1 << 32), "int4": 0x88888888 - (1 << 32)}  # a word's, which make its items unsigned
LINE = 64


def aligned(shape, dtype) -> np.ndarray:
    """Zeros that begin at a cache line, with some to be read past the end."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 2 * LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(dtype).reshape(shape)


def in_blocks(rows: np.ndarray) -> np.ndarray:
    """An array of an output a row as [n / WIDTH][columns][WIDTH], with zeros for outputs that are not there.

    >>> in_blocks(np.arange(40).reshape(20, 2)).shape
    (2, 2, 16)
    """
    n, columns = rows.shape
    blocks, whole = aligned((-(-n // WIDTH), columns, WIDTH), rows.dtype), n // WIDTH * WIDTH
    blocks[: n // WIDTH] = rows[:whole].reshape(n // WIDTH, WIDTH, columns).transpose(0, 2, 1)
    if whole < n:
        blocks[-1, :, : n - whole] = rows[whole:].T
    return blocks


def in_rows(blocks: np.ndarray, n: int) -> np.ndarray:
    """The inverse: a new array."""
    count, columns, _ = blocks.shape
    return np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(count * WIDTH, columns)[:n]


def as_words(dtype: str, values: np.ndarray) -> np.ndarray:
    """Bytes of an output a row, padded with zeros to words, as blocks of int32."""
    n, count = values.shape
    padded = np.zeros((n, -(-count // 4) * 4), np.int8)
    padded[:, :count] = values.view(np.int8)
    return in_blocks(padded.view("<i4") ^ np.int32(OFFSETS[dtype]))


def as_bytes(dtype: str, words: np.ndarray, n: int, count: int) -> np.ndarray:
    """The inverse: int8, `count` in each of n rows."""
    rows = in_rows(words, n) ^ np.int32(OFFSETS[dtype])
    return np.ascontiguousarray(rows.astype("<i4", copy=False).view(np.int8)[:, :count])


def two_a_byte(values: np.ndarray) -> np.ndarray:
    """int4 along rows, the first in the low bits of its byte; an odd number is filled up by a zero.

    >>> two_a_byte(np.array([[1, -1, 3]], np.int8))
    array([[-15,   3]], dtype=int8)
    """
    padded = np.pad(values, ((0, 0), (0, values.shape[1] % 2)))
    return padded[:, ::2] & 15 | padded[:, 1::2] << 4


def one_a_byte(pairs: np.ndarray, k: int) -> np.ndarray:
    """The inverse."""
    values = np.empty((len(pairs), 2 * pairs.shape[1]), np.int8)
    values[:, ::2], values[:, 1::2] = pairs << 4 >> 4, pairs >> 4
    return values[:, :k]
