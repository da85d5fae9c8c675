"""Hostile calls of every public operation, held against NumPy and slow references.

    python -m tests.fuzz --seconds 3600 --seed 7                  an hour of them
    python -m tests.fuzz --seconds 3600 --seed 7 --state file     the same; begun again, it goes on where it was
    python -m tests.fuzz --seed 7 --case 1234                     one of them: what a finding prints
    python -m tests.fuzz --seconds 60 --seed 7 --only product     of the classes whose name contains a word

A case is drawn from (seed, number) alone. The cases run in a child, so a crash and a hang are findings as well; none
stops the run. The status is 1 if there was one.
"""

import argparse
import itertools
import os
import sys

os.environ["NBKERNELS_TUNED"] = "0"  # a table that its user has tuned is no part of it
os.environ.setdefault("NBKERNELS_MODE", "chain")  # the order of the references


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long (60)")
    parser.add_argument("--cases", type=int, help="how many at most")
    parser.add_argument("--seed", type=int, default=0, help="what the cases are drawn from, with their numbers (0)")
    parser.add_argument("--from", type=int, default=0, dest="start", metavar="CASE", help="the first case")
    parser.add_argument("--case", help="one case, or those from A to B, as A-B, in one process")
    parser.add_argument("--only", default="", help="classes whose name contains this")
    parser.add_argument("--state", help="a file: where the run is, to go on from")
    parser.add_argument("--hang", type=float, default=240, help="seconds after which a case hangs (240)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    from . import run

    if given.child:
        run.child(given.seed, itertools.count(given.start), given.only)
        return 0
    if given.case:
        first, _, last = given.case.partition("-")
        campaign = run.Campaign(given.seed, int(first), given.only, given.hang)
        campaign.run(1e9, int(last or first) + 1 - int(first))
    else:
        campaign = run.Campaign(given.seed, given.start, given.only, given.hang, given.state)
        campaign.run(given.seconds, given.cases)
    print(campaign.table())
    return 1 if campaign.found else 0


if __name__ == "__main__":
    sys.exit(main())
