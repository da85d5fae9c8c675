"""Faults planted one at a time in a copy of the tree: each must fail the tests that are named for it.

    python -m tests.mutants                          all of them, some half an hour
    python -m tests.mutants --only strides           those whose file, change or tests contain a word
    python -m tests.mutants --seconds 600            as many as begin in ten minutes
    python -m tests.mutants --list                   what there is

Before it counts, a mutant's tests must pass without it. What survives or does not end is printed, and the status is
then 1.
"""

import argparse
import sys
import time

from tqdm import tqdm

from .run import Tree
from .table import MUTANTS


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="those whose file, change or tests contain this")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after so many")
    parser.add_argument("--list", action="store_true", help="print them, run none")
    given = parser.parse_args(argv)
    chosen = [mutant for mutant in MUTANTS if given.only in str(mutant)]
    if given.list:
        print(*chosen, sep="\n")
        return 0
    end, counts = time.monotonic() + given.seconds, dict.fromkeys(("killed", "survived", "endless", "unsound"), 0)
    with Tree() as tree:
        for mutant in tqdm(chosen, unit="mutant", disable=None):
            if time.monotonic() > end:
                break
            how, told = tree.judge(mutant)
            counts[how] += 1
            if how != "killed":
                tqdm.write(f"{how.upper()} {mutant}\n{told}")
    print(f"{sum(counts.values())} of {len(chosen)} mutants: " + ", ".join(f"{n} {how}" for how, n in counts.items()))
    return 1 if sum(counts.values()) > counts["killed"] else 0


if __name__ == "__main__":
    sys.exit(main())
