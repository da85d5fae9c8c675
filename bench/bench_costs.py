"""The costs by which paths are chosen (nbkernels/cpu/gemm/costs.json), fitted to measured times, and judged.

    python bench/bench_choice.py --seed 1 --csv FILE      # measure, on the processor at hand
    python bench/bench_costs.py FILE --kind KIND --bits 256 --l2 512                                  # fit, and print
    python bench/bench_costs.py FILE --kind KIND --bits 256 --l2 512 --source "what it is" --write    # and keep
    python bench/bench_costs.py FILE --kind KIND --bits 256 --l2 512 --tuned          # what tune makes of other kinds'
    python bench/bench_costs.py FILE --kind KIND --bits 256 --l2 512 --without        # what each path is for

What a product takes by a path is a sum of features times costs of at least 0 (cost.py): non-negative least squares of
the relative error, as of logarithms, where a path counts by the root of the best one's share of its time. Judged are
products that the fit has not seen, a fifth of them in turn: the chosen path's time over that of the fastest.
"""

import argparse
import csv
import datetime
import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
from tabulate import tabulate

from nbkernels.cpu.gemm import cost
from nbkernels.cpu.runtime.status import PATHS
from nbkernels.jit.ir.tile import Tile
from nbkernels.jit.ir.vector import SIZE
from nbkernels.tuning import adapt, plans

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from report import geometric_mean

FOLDS, STEPS, DIGITS, SEEDS = 5, 5, 4, 10
REGISTERS = {256: 6, 512: 12}  # rows of the register tile, by bits of vectors


def tile_of(dtype: str, bits: int) -> Tile:
    """The register tile of such vectors, as blocking.small has it here."""
    return Tile(dtype, REGISTERS[bits], 2, bits // (8 * SIZE[dtype]))


class Product(adapt.Product):
    """A line of a file."""

    def __init__(self, line: dict, bits: int, l2: int):
        shape, self.dtype = tuple(int(line[name]) for name in "mnk"), line["dtype"]
        super().__init__(shape, line["layout"], int(line["threads"]), tile_of(self.dtype, bits), l2)
        self.times = np.array([float(line.get(PATHS[way]) or "nan") for way in cost.WAYS])
        self.fold = hash(shape) % FOLDS  # the same in every process, and whatever the threads

    def predicted(self, costs) -> np.ndarray:
        """Microseconds of each path by {(dtype, threads, path): costs}; infinite where there are none."""
        found = (costs.get((self.dtype, 2 if many else 1, way)) for way, many in zip(cost.WAYS, self.many))
        return np.array([math.inf if each is None else row @ each for each, row in zip(found, self.features)])

    def chosen(self, costs, without=None) -> int:
        """The path that is predicted to be the fastest, or would be without one."""
        times = np.where(np.isnan(self.times) | ~self.may, math.inf, self.predicted(costs))
        if without is not None:
            times[without] = math.inf
        return int(times.argmin())

    def regret(self, costs) -> float:
        return self.times[self.chosen(costs)] / np.nanmin(self.times)


def read(file, bits: int, l2: int) -> list[Product]:
    """Its products of more than one row and column: those have other paths."""
    with open(file, newline="", encoding="utf-8") as lines:
        found = [Product(line, bits, l2) for line in csv.DictReader(lines)]
    return [each for each in found if min(each.shape[:2]) > 1]


def nonnegative(features, times, weights) -> np.ndarray:
    """Costs of at least 0 with the least squares of log(predicted / time), by steps of weighted least squares."""
    from scipy.optimize import nnls

    near = times
    for _ in range(STEPS):
        rows = features * (weights / np.sqrt(times * near))[:, None]
        scale = rows.max(0, initial=0) + (rows.max(0, initial=0) == 0)
        found = nnls(rows / scale, weights * np.sqrt(times / near), maxiter=10_000)[0] / scale
        near = np.maximum(features @ found, times / 20)
    return found


def fit(products) -> dict:
    """{(dtype, threads, path): costs} of all that the products tell."""
    costs = {}
    for dtype, threads, (i, way) in ((d, t, w) for d in SIZE for t in (1, 2) for w in enumerate(cost.WAYS)):
        part = [each for each in products if (each.dtype, each.threads) == (dtype, threads)
                and each.many[i] == (threads > 1) and each.times[i] > 0]  # fmt: skip
        if len(part) > cost.COUNT:
            times = np.array([each.times[i] for each in part])
            weights = np.sqrt([np.nanmin(each.times) / each.times[i] for each in part])
            costs[dtype, threads, way] = nonnegative(np.array([each.features[i] for each in part]), times, weights)
    return costs


def judged(products) -> list[dict]:
    """A line for each number of threads: regret of products that were not fitted to."""
    lines = []
    for threads in sorted({each.threads for each in products}):
        found = []
        for fold in range(FOLDS):
            costs = fit([each for each in products if each.fold != fold])
            found += [each.regret(costs) for each in products if (each.threads, each.fold) == (threads, fold)]
        lines.append({"threads": threads, "products": len(found), "regret": f"{geometric_mean(found):.3f}",
                      "95th": f"{np.quantile(found, 0.95):.2f}", "most": f"{max(found):.2f}"})  # fmt: skip
    return lines


def tuned(products) -> list[dict]:
    """A line for each kind and number of threads: regret by its costs, as if the machine were another's, and by what
    tune would keep, which times some of the products; judged are the others."""
    found = {}
    for each in products:
        each.times[~each.may] = np.nan
    for kind, dtype, seed in itertools.product(cost.KINDS, cost.DTYPES, range(SEEDS)):
        rng, own = np.random.default_rng(seed), adapt.part(cost.KINDS[kind]["table"], dtype)
        parts = [[each for each in products if (each.dtype, each.threads) == (dtype, threads)] for threads in (1, 2)]
        light = [[each for each in part if np.nanmin(each.times) < plans.LIGHT] for part in parts]
        seen = [each for part in light for each in rng.permutation(part)[: plans.PRODUCTS]]
        if not seen:
            continue
        _, costs, *_ = adapt.best({kind: own}, kind, seen)
        for threads, part in enumerate(parts, 1):
            others = [each for each in part if each not in seen]
            if not others:
                continue
            fastest = np.nanmin([each.times for each in others], 1)
            line = found.setdefault((kind, threads), [[], [], 0])
            line[0].extend(adapt.chosen(own, others) / fastest)
            line[1].extend(adapt.chosen(own if costs is None else costs, others) / fastest)
            line[2] += costs is not None
    return [{"costs of": kind, "threads": threads, "regret": f"{geometric_mean(before):.3f}",
             "95th": f"{np.quantile(before, 0.95):.2f}", "tuned": f"{geometric_mean(after):.3f}",
             "95th ": f"{np.quantile(after, 0.95):.2f}", "kept": f"{kept} of {SEEDS * len(cost.DTYPES)}"}
            for (kind, threads), (before, after, kept) in found.items()]  # fmt: skip


def without(products, costs) -> list[dict]:
    """A line for each path and number of threads: the share of the products that take it, and how many times as long
    they would take by what would be chosen without it."""
    lines = []
    for (i, way), threads in itertools.product(enumerate(cost.WAYS), (1, 2)):
        part = [each for each in products if each.threads == threads]
        taken = [each for each in part if each.chosen(costs) == i]
        losses = np.array([each.times[each.chosen(costs, i)] / each.times[i] for each in taken])
        losses = losses[np.isfinite(losses)]  # some have no other path
        if len(losses):
            lines.append({"path": PATHS[way], "threads": threads, "takes": f"{len(taken) / len(part):.0%}",
                          "without it": f"{geometric_mean(losses):.2f}",
                          "95th": f"{np.quantile(losses, 0.95):.2f}"})  # fmt: skip
    return lines


def costs_of(kind: str) -> dict:
    """{(dtype, threads, path): costs} of a kind that is kept."""
    return {
        (dtype, int(threads), way): np.array(by_path[PATHS[way]])
        for dtype, by_threads in cost.KINDS[kind]["costs"].items()
        for threads, by_path in by_threads.items()
        for way in cost.WAYS
        if by_path.get(PATHS[way])
    }


def text(kinds: dict) -> str:
    """costs.json: a line for each path."""
    marks, lines = {}, {"features": list(cost.FEATURES)}
    for kind, each in kinds.items():
        lines[kind] = {name: value for name, value in each.items() if name in ("source", "date", "costs")}

    def marked(value):
        if isinstance(value, dict):
            return {name: marked(each) for name, each in value.items()}
        if isinstance(value, list):
            marks[f'"<{len(marks)}>"'] = json.dumps(value)
            return f"<{len(marks) - 1}>"
        return value

    found = json.dumps(marked(lines), indent=1)
    for mark, line in marks.items():
        found = found.replace(mark, line)
    return found + "\n"


def rounded(costs) -> list[float]:
    return [float(f"{each:.{DIGITS}g}") for each in costs]


def test_costs_are_written_as_they_are_read(tmp_path):
    file = tmp_path / "costs.json"
    file.write_text(text(cost.KINDS))
    assert cost.read(file) == (cost.KINDS, None)


def test_a_fit_finds_the_costs_that_made_the_times(monkeypatch):
    """And what tune would keep loses less than another kind's."""
    own, rng, products = costs_of("avx2"), np.random.default_rng(0), []
    for layout in 75 * ["NN", "NT", "TN", "TT"]:
        sizes = {name: int(2 ** rng.uniform(1, 11)) for name in "mnk"}
        each = Product(sizes | {"layout": layout, "dtype": "float64", "threads": 1}, 256, 512 << 10)
        each.times = np.where(each.may, each.predicted(own), np.nan)
        products.append(each)
    found = fit(products)
    assert geometric_mean([each.regret(found) for each in products]) < 1.01
    monkeypatch.setattr(sys.modules[__name__], "SEEDS", 1)
    losses = {line["costs of"]: (float(line["regret"]), float(line["tuned"])) for line in tuned(products)}
    assert losses["avx2"] == (1, 1)
    assert losses["avx512"][0] > losses["avx512"][1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="what bench_choice.py --csv has written")
    parser.add_argument("--kind", required=True, help="the processor's, as NBKERNELS_MACHINE names it")
    parser.add_argument("--bits", type=int, choices=REGISTERS, required=True, help="of its vectors")
    parser.add_argument("--l2", type=int, required=True, help="KiB of its L2")
    parser.add_argument("--source", default="", help="where the times are from")
    parser.add_argument("--tuned", action="store_true", help="judge what tune makes of each kind's costs instead")
    parser.add_argument("--without", action="store_true", help="say what products would take without each path instead")
    parser.add_argument("--write", action="store_true", help="put the costs into costs.json")
    args = parser.parse_args()
    products = read(args.file, args.bits, args.l2 << 10)
    lines = without(products, costs_of(args.kind)) if args.without else (tuned if args.tuned else judged)(products)
    print(tabulate(lines, headers="keys", disable_numparse=True))
    if not args.write:
        return
    found = fit(products)
    costs = {
        dtype: {str(threads): {PATHS[way]: rounded(found[dtype, threads, way]) for way in cost.WAYS
                               if (dtype, threads, way) in found} for threads in (1, 2)}
        for dtype in cost.DTYPES
    }  # fmt: skip
    entry = {"source": args.source, "date": datetime.date.today().isoformat(), "costs": costs}
    cost.FILE.write_text(text(cost.KINDS | {args.kind: entry}), encoding="utf-8")


if __name__ == "__main__":
    main()
