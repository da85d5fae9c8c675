"""Which element of a tile a lane's register holds, for mma.sync, wgmma, ldmatrix and stmatrix. Nothing runs here.

A warp's lanes are 8 rows of 4: lane = 4*row + column. In A and B a register of 32 bits (64 for float64) holds elements
that are neighbours along k, and 4 columns of registers follow each other there.
"""

from __future__ import annotations

import numpy as np

LANES = np.arange(32)
ROW, COLUMN = LANES // 4, LANES % 4


def left(registers: int, each: int, rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """(row, k) of A's elements as [register, lane, element]; `each` elements are in a register."""
    i, e = np.arange(registers)[:, None, None], np.arange(each)
    down, along = (i & 1, i >> 1) if rows == 16 else (0 * i, i)
    row = ROW[:, None] + 8 * down + 0 * e
    return row, each * COLUMN[:, None] + e + 4 * each * along


def right(registers: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """(k, column) of B's elements as [register, lane, element]."""
    i, e = np.arange(registers)[:, None, None], np.arange(each)
    k = each * COLUMN[:, None] + e + 4 * each * i
    return k, ROW[:, None] + 0 * k


def sums(registers: int, each: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of C's and D's elements as [register, lane, element]: blocks of 8 columns, upper rows first."""
    i, e = np.arange(registers)[:, None, None], np.arange(each)
    number = i * each + e  # of the four elements of a lane in a block
    block, inside = number // 4, number % 4
    return ROW[:, None] + 8 * (inside >> 1), 8 * block + 2 * COLUMN[:, None] + (inside & 1)
