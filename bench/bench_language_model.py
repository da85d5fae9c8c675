"""Tokens a second of examples/language_model.py by each form of its weights: --json FILE puts the rows there.

python bench/bench_language_model.py --json bench/results/language-model-amx.json
"""

import argparse
import sys
from pathlib import Path

from nbkernels.benches.peak import workers
from nbkernels.benches.peers import at_best
from nbkernels.cpu.runtime import threads

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench"), str(ROOT / "examples")]

import language_model
from results_file import keep
from tabulate import tabulate


def rows(count, rounds):
    with workers(count):
        for name, (seconds, difference, largest) in language_model.measured(rounds).items():
            yield {"bench": "language model", "dtype": name, "threads": count, "difference": difference,
                   "largest": largest, "tokens_s": language_model.TOKENS / seconds}  # fmt: skip


def test_language_model(benchmark, monkeypatch):
    monkeypatch.setattr(language_model, "LAYERS", 1)
    found = {row["dtype"]: row for row in benchmark.pedantic(lambda: list(rows(1, 1)))}
    assert found["float32, packed"]["difference"] == 0
    assert all(row["difference"] < 0.3 * row["largest"] for row in found.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="put the rows there")
    parser.add_argument("--rounds", type=int, default=9, help="(%(default)s)")
    args = parser.parse_args()
    found = [row for count in sorted({1, threads.count()}) for row in rows(count, args.rounds)]
    lines = [[row["dtype"], row["threads"], round(row["tokens_s"]), f"{row['difference']:.1g}"] for row in found]
    print(tabulate(lines, headers=["weights", "threads", "tokens/s", "largest difference"]))
    if args.json:
        keep(args.json, found)


if __name__ == "__main__":
    at_best()
    main()
