"""The pictures of docs/tuning.md, from the committed sweeps: python bench/pictures.py [--measure] [NAME ...].

A sweep is `python -m nbkernels tune` over two sizes of tiles of one product; --measure makes it anew, on a quiet
machine, into bench/results/tiles-NAME.json. Without it the pictures are drawn from what is there.
"""

import argparse
from pathlib import Path

import nbkernels
from nbkernels.tuning.result import Tuning

ROOT = Path(__file__).resolve().parent.parent
SHAPE, DTYPE = (1024, 1024, 1024), "float32"
SWEEPS = {
    "registers": ["mr=1:8:1", "nr=8:40:8"],
    "panels": ["kc=64:1024:64", "nb=32:416:32"],
    "outer": ["mc=48,96,192,384,768,1536,4092", "nc=128,256,512,1024,2048,4096", "nb=128"],
}  # fmt: skip


def results(name) -> Path:
    return ROOT / "bench" / "results" / f"tiles-{name}.json"


def picture(name) -> Path:
    return ROOT / "docs" / "pictures" / f"tiles-{name}.png"


def measure(name, threads, budget) -> None:
    """One sweep into its file."""
    words = dict(dtype=DTYPE, layout="NN", threads=threads, budget=budget, save=False)
    found = nbkernels.tune(SHAPE, tiles=SWEEPS[name], **words)
    found.json(results(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(SWEEPS), metavar="NAME", help=", ".join(SWEEPS))
    parser.add_argument("--measure", action="store_true", help="sweep first")
    parser.add_argument("--threads", type=int, default=1, help="of the sweeps (%(default)s)")
    parser.add_argument("--budget", type=float, default=180, help="seconds for each (%(default)s)")
    options = parser.parse_args()
    for name in options.names:
        if options.measure:
            measure(name, options.threads, options.budget)
        picture(name).parent.mkdir(exist_ok=True)
        Tuning.read(results(name)).plot(picture(name))
        print(picture(name).relative_to(ROOT))


if __name__ == "__main__":
    main()
