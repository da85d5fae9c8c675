"""Costs by which a product chooses its path (nbkernels/cpu/gemm/cost.py), fitted to another machine by its times.
They begin with a kind of processor's, and depart from them as far as the times demand. No clock is read here.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..cpu.gemm import cost, paths

PULL = 1.0  # how many products each cost's own value counts as: with 3 the choice loses 0.3 % more, with 0.3 no less
MOST = 10.0  # times as much, or as little, that a cost becomes, which so stays above 0
FOLDS = 4  # parts, each judged by costs that are fitted to the others: of 2 a sixth less is kept, of 8 no more
LEAST = 0.01  # what they must gain: another kind's costs lose 3 to 7 % more than a machine's own


class Product:
    """Sizes, layout and threads; what it has by each path of cost.WAYS, which paths it may take, and which of them
    threads share; microseconds of each, NaN where there are none."""

    def __init__(self, shape, layout, threads, tile, l2):
        self.shape, self.layout, self.threads, self.tile, self.l2 = shape, layout, threads, tile, l2
        self.may = np.array([paths.possible(tile, way, shape[2], True) and paths.bounded(way, *shape)
                             for way in cost.WAYS])  # fmt: skip
        self.many = np.array([threads > 1 and paths.shared(way, *shape) for way in cost.WAYS])
        self.times = np.full(len(cost.WAYS), math.nan)

    @functools.cached_property
    def features(self) -> np.ndarray:
        """A row for each path; of more than two threads each has a part."""
        (m, n, _), ((rsa, csa), (rsb, csb)) = self.shape, paths.strides(self.layout, *self.shape)
        product, each = (*self.shape, rsa, csa, rsb, csb), np.eye(cost.COUNT)
        shares = np.where(self.many, 2.0 / self.threads, 1.0)
        has = (cost.has(self.tile, product, cost.swaps(way, m, n, rsa, csb), self.l2) for way in cost.WAYS)
        return np.array([cost.takes(each, 0, features, share) for features, share in zip(has, shares)])


def part(table, dtype) -> np.ndarray:
    """A dtype's costs of a table, by one thread or many, path and feature."""
    return np.array(table).reshape(len(cost.DTYPES), len(cost.THREADS), len(cost.WAYS), cost.COUNT)[
        cost.DTYPES.index(dtype)
    ]


def predicted(costs, products) -> np.ndarray:
    """Microseconds of each product by each path."""
    features, many = (np.array([getattr(each, name) for each in products]) for name in ("features", "many"))
    return (features * costs[many.astype(int), np.arange(len(cost.WAYS))]).sum(2)


def chosen(costs, products) -> np.ndarray:
    """Microseconds of each by the path that costs choose among those that were timed."""
    times = np.array([each.times for each in products])
    best = np.where(np.isnan(times), math.inf, predicted(costs, products)).argmin(1)
    return times[np.arange(len(times)), best]


def adapted(costs, products) -> np.ndarray:
    """Costs with the least squares of the relative error, where a path counts by the best one's share of its time, and
    of what each cost departs by from its own value times the machine's speed."""
    times, expected = np.array([each.times for each in products]), predicted(costs, products)
    known = ~np.isnan(times) & np.isfinite(expected)
    weights = np.where(known, np.nanmin(times, 1)[:, None] / times, 0.0)
    speed = math.exp(np.average(np.log(times[known] / expected[known]), weights=weights[known]))
    features, many = (np.array([getattr(each, name) for each in products]) for name in ("features", "many"))
    found = speed * costs
    for one, way in np.ndindex(found.shape[:2]):
        rows = known[:, way] & (many[:, way] == one)
        weight = weights[rows, way][:, None]
        shares = features[rows, way] * found[one, way] / times[rows, way][:, None]  # of the time, by each cost
        squares = shares.T @ (weight * shares) + PULL * np.eye(cost.COUNT)
        change = np.linalg.solve(squares, shares.T @ (weight * (1 - shares.sum(1, keepdims=True))))[:, 0]
        found[one, way] *= np.clip(1 + change, 1 / MOST, MOST)
    return found


def gain(before, costs, products) -> tuple[float, float]:
    """How much faster products are by costs that are fitted to the others than by those before, in logarithms, and the
    mean's standard error."""
    ratios = []
    for fold in range(FOLDS):
        held = products[fold::FOLDS]
        others = [each for i, each in enumerate(products) if i % FOLDS != fold]
        ratios.extend(np.log(chosen(before, held) / chosen(adapted(costs, others), held)))
    return float(np.mean(ratios)), float(np.std(ratios) / math.sqrt(len(ratios)))


def best(kinds, own, products):
    """(kind, costs, gain, error): of the kinds' costs, {kind: costs}, those that, fitted to the products, gain the most
    over the machine's own kind's; the costs are None where that is no more than LEAST, or than two errors."""
    gains = {kind: gain(kinds[own], costs, products) for kind, costs in kinds.items()}
    kind = max(gains, key=gains.get)
    more, error = gains[kind]
    return kind, adapted(kinds[kind], products) if more > max(LEAST, 2 * error) else None, more, error
