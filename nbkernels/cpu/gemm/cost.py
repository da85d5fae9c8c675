"""Predicted times of a product by each path, in microseconds: FEATURES of its sizes and layouts times costs.

Costs are data, costs.json: for each kind of processor, dtype, path, and one thread or two, fitted to measured times by
bench/bench_costs.py. Those that the tuner has fitted to this machine (tuning/plans.py) go before them. Compiled code
finds them by the name of a symbol, so that machine code depends on none.
"""

from __future__ import annotations

import json
import math
from array import array
from importlib import resources

from llvmlite import binding, ir

from ... import winners
from ...jit.compile.lazy import intrinsic, plain, types
from ...jit.ir.vector import outside, width_bits
from ..runtime.machine import machine, plan_key
from ..runtime.status import COLUMNS, DEEP, GEMV, PACKED, PATHS, SHORT, SMALL, THIN
from .blocking import WAY

FILE, SYMBOL = resources.files(__package__) / "costs.json", "nbkernels_costs"
WAYS = THIN, DEEP, SHORT, COLUMNS, PACKED, SMALL  # consecutive numbers
DTYPES, THREADS = ("float32", "float64"), ("1", "2")
# What a product has: v tiles and w vectors across, areas of A, B and C in vectors. `turned`: the path computes C' =
# B' A', of which all is said then. `vast`: B, by rows, or A, by columns, has VAST times the bytes of L2: a panel of it
# comes from memory line by line, each of its own page. `crowded`: B's lines are ways of L1 apart, and share a set.
FEATURES = (
    "1", "m", "w", "k", "v k", "m w k", "C", "C, turned", "A by rows", "A by columns", "B by columns", "v A by rows",
    "v A by columns", "A vast", "B vast", "B crowded",
)  # fmt: skip
VAST = 16
COUNT = len(FEATURES)
NEVER = [math.inf] + [0] * (COUNT - 1)  # the costs of a path that is not taken
FLAWS = OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError


@plain
def place(size, way, many):
    """Where the costs of a path begin, for elements of so many bytes, by one thread or by many."""
    return ((size // 8 * len(THREADS) + many) * len(WAYS) + way - THIN) * COUNT


@plain
def swaps(way, m, n, rsa, csb):
    """Whether a path computes C' = B' A': vectors lie along the side that is the longer one in memory, or at all; a
    vector is a column."""
    if way == GEMV:
        return n > 1
    if way == DEEP:
        return (m > n and rsa == 1) or (csb != 1 and (rsa == 1 or m <= n))
    return way == SHORT and m > n


@plain(forceinline=True)
def has(tile, product, turned, cache):
    """All FEATURES but the first of a product, (m, n, k, strides in elements), with so many bytes of L2."""
    m, n, k, rsa, csa, rsb, csb = product
    if turned:
        m, n, rsa, csa, rsb, csb = n, m, csb, rsb, csa, rsa
    size, part = tile.itemsize, 1.0 / tile.lanes
    v, w = -(-n // tile.nr), -(-n // tile.lanes)
    a, b, c = m * k * part, k * n * part, m * n * part
    a_rows, b_columns = a if csa == 1 else 0.0, 0.0 if csb == 1 else b
    a_vast = a if csa != 1 and m * k * size > VAST * cache else 0.0
    b_vast = b if csb == 1 and k * n * size > VAST * cache else 0.0
    b_crowded = b if (rsb if csb == 1 else csb) * size % WAY == 0 else 0.0
    return (
        float(m), float(w), float(k), float(v * k), float(m * w * k), c, c if turned else 0.0, a_rows, a - a_rows,
        b_columns, v * a_rows, v * (a - a_rows), a_vast, b_vast, b_crowded,
    )  # fmt: skip


@plain(forceinline=True)
def takes(costs, at, features, share):
    """Microseconds of what a product `has` by costs[at:at + COUNT]; threads share all but the first."""
    m, w, k, v_k, m_w_k, c, c_turned, a_rows, a_columns, b_columns, v_a_rows, v_a_columns = features[:12]
    a_vast, b_vast, b_crowded = features[12:]
    return costs[at] + share * (
        costs[at + 1] * m
        + costs[at + 2] * w
        + costs[at + 3] * k
        + costs[at + 4] * v_k
        + costs[at + 5] * m_w_k
        + costs[at + 6] * c
        + costs[at + 7] * c_turned
        + costs[at + 8] * a_rows
        + costs[at + 9] * a_columns
        + costs[at + 10] * b_columns
        + costs[at + 11] * v_a_rows
        + costs[at + 12] * v_a_columns
        + costs[at + 13] * a_vast
        + costs[at + 14] * b_vast
        + costs[at + 15] * b_crowded
    )


def read(file) -> tuple[dict[str, dict], str | None]:
    """A file's costs by kind of processor, each with the `table` of compiled code; or none, and why."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        _same(found.pop("features"))
        return {kind: each | {"table": _table(each["costs"])} for kind, each in found.items()}, None
    except FLAWS as error:
        return {}, f"{file} holds no costs, and packed is the path of all: {type(error).__name__}: {error}"


def _same(features) -> None:
    if tuple(features) != FEATURES:
        raise ValueError("they are of other features: bench/bench_costs.py fits them again")


def _table(costs) -> array:
    """{dtype: {threads: {path: costs}}} as compiled code reads it."""
    return array("d", [word for dtype in DTYPES for word in _part(costs[dtype], dtype)])


def _part(costs, dtype) -> array:
    """Return a dtype's costs, by threads and path, as compiled code reads them; a path without costs is never taken."""
    words = array("d")
    for threads in THREADS:
        for way in WAYS:
            each = costs[threads].get(PATHS[way]) or NEVER
            sound = all(type(cost) in (int, float) and 0 <= cost < math.inf for cost in each) or each is NEVER
            if len(each) != COUNT or not sound:
                raise ValueError(f"{dtype}, {threads}, {PATHS[way]}: {COUNT} costs of at least 0 are wanted")
            words.extend(each)
    return words


KINDS, PROBLEM = read(FILE)


def kind() -> str:
    """Whose costs are used where none are fitted: those that the machine's record names, or of the vectors' width."""
    named = machine().costs
    return named if named in KINDS else "avx512" if width_bits() == 512 else "avx2"


def fitted(dtype: str) -> tuple[str, array] | None:
    """The part of a dtype that the tuner has fitted to this machine, and the kind whose costs it began with; None where
    there is none, or not one of these features and of that kind's paths."""
    try:
        record = winners.entries()[plan_key(dtype)]["candidate"]
        _same(record["features"])
        began, costs = KINDS[record["kind"]]["costs"][dtype], record["costs"]
        if any(set(costs[threads]) != set(began[threads]) for threads in THREADS):
            raise ValueError("they are of other paths")
        return record["kind"], _part(costs, dtype)
    except FLAWS:
        return None


def of_machine() -> array:
    """The table of the machine's kind, with what is fitted in its place; where there is none, one by which no path is
    better than another."""
    if kind() not in KINDS:
        return array("d", NEVER * (len(DTYPES) * len(THREADS) * len(WAYS)))
    found, size = KINDS[kind()]["table"][:], len(KINDS[kind()]["table"]) // len(DTYPES)
    for i, dtype in enumerate(DTYPES):
        if own := fitted(dtype):
            found[i * size : (i + 1) * size] = own[1]
    return found


table = of_machine()[:]  # compiled code reads it: it stays where it is
binding.add_symbol(SYMBOL, table.buffer_info()[0])


def fill(costs) -> None:
    """Go by these costs from now on."""
    memoryview(table)[:] = costs


def without(costs, way: int) -> array:
    """Such costs by which no other path is taken."""
    found = array("d", costs)
    for at in range(0, len(found), COUNT):
        if at // COUNT % len(WAYS) != way - THIN:
            found[at] = math.inf
    return found


@intrinsic
def known(typing):
    """The costs, from compiled code."""

    def emit(context, builder, signature, args):
        record = outside(builder, SYMBOL, ir.ArrayType(ir.DoubleType(), len(table)))
        return builder.bitcast(record, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(), emit
