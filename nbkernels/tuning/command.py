"""`python -m nbkernels tune`: its options, its progress, its words."""

from __future__ import annotations

import argparse
import math
import sys

CLASSES = ("square", "tall", "wide", "deep", "flat")
BUDGET = 240


def options(parser) -> None:
    """The command's options; light, for --help."""
    add = parser.add_argument
    add("--shape", nargs="+", action="append", metavar="M N K|CLASS",
        help=f"a product's sizes, or a class: {', '.join(CLASSES)}; may be repeated (every class)")  # fmt: skip
    add("--dtype", default="float32", help="(%(default)s)")
    add("--mode", choices=["chain", "tf32"], help="of products on CUDA: chain of float16 and bfloat16, tf32 of float32")
    add("--layout", nargs="+", metavar="NN", help="NN, NT, TN, TT: T where columns are contiguous (all four)")
    add("--threads", type=int, nargs="+", metavar="N", help="judge by so many threads (all, and one)")
    add("--device", choices=["cpu", "cuda"], default="cpu", help="(%(default)s)")
    add("--tiles", nargs="+", action="extend", metavar="NAME=SIZES",
        help="sweep these sizes: kc=128,256, kc=128:1024 (doubling), kc=128:512:64; mr nr kc nb mc nc on the CPU; on "
        "CUDA tier=M,W bm bn bk stages warps raster split=0,1, before compute capability 8.0 bm bn bk tm tn "
        "(candidates around the default, and far from it)")  # fmt: skip
    add("--budget", type=_seconds, default=BUDGET, metavar="SECONDS", help="for all of it (%(default)s)")
    add("--dry-run", action="store_true", help="say what would be timed, and time nothing")
    add("--no-keep", action="store_true", help="measure, and keep nothing")
    add("--json", metavar="FILE", help="write every row there")
    add("--csv", metavar="FILE", help="the same as a table")
    add("--t4", metavar="FILE", help="the same as T4, the JSON of Kernel Tuner and others")
    add(
        "--plot",
        metavar="FILE",
        help="draw the heat map over two tile sizes: .png, .svg (needs matplotlib), - in the terminal",
    )
    add("--axes", nargs=2, metavar="NAME", help="the two sizes of the heat map (those with the most values)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--show", action="store_true", help="print the winners that are kept for this machine")
    which.add_argument("--reset", action="store_true", help="forget them; with --dtype of another than float32 its own")
    which.add_argument("--export", metavar="FILE", help="write the winners of every machine to a file")
    which.add_argument("--import", dest="file", metavar="FILE", help="add the winners of such a file")
    which.add_argument("--verify", type=int, metavar="N", help="time N random products with the winners and without")
    add("--seed", type=int, default=0, help="what --verify draws them from (%(default)s)")


def _seconds(text):
    try:
        if 0 < float(text) < math.inf:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")


def run(args) -> int:
    """Exit code: 0, 2 for what cannot be had, 130 after Ctrl-C."""
    from . import ask

    try:
        return _managed(args) if args.show or args.reset or args.export or args.file else _tuned(args)
    except ask.Impossible as error:
        print(f"tune: {error}", file=sys.stderr)
        return 2


def _managed(args) -> int:
    """What is done with winners that are there."""
    from ..plots import columns
    from . import keep
    from .run import backend

    side = backend(args.device, args.dtype, args.mode)
    store = side.store()
    if store is None:
        print("tune: nothing is kept: there is no directory of this user's to keep it in", file=sys.stderr)
        return 2
    if problem := store.problem():
        print(problem, file=sys.stderr)
    if args.export:
        print(f"{args.export}: {keep.export(store, args.export)} winners")
        return 0
    with keep.alone(store):
        if args.file:
            found = keep.read(args.file)
            done, what = store.add(found), f"{len(found)} winners from {args.file}"
        elif args.reset:
            found = keep.kept(store, side.place())
            beside = "peaks", *(f"plans of {dtype}" for dtype in ("float32", "float64"))
            done = store.remove([*found, *(f"{what} on {side.place()}" for what in beside)])
            what = f"{len(found)} winners forgotten"
        else:
            found = keep.kept(store, side.place())
            print(columns.table(keep.shown(found)) if found else
                  columns.line(f"no winners for {side.place()}: python -m nbkernels tune finds some"))  # fmt: skip
            return 0
    if not done:
        print(f"tune: {store.path} cannot be written", file=sys.stderr)
        return 2
    side.renew()
    print(f"{store.path}: {what}")
    return 0


def _shapes(given):
    """--shape as `tune` takes it."""
    from .ask import Impossible

    found = []
    for words in given or ():
        numbers = [word for word in words if word.isdecimal()]
        if numbers and (len(words) != 3 or len(numbers) != 3):
            raise Impossible(f"shape {' '.join(words)}: three whole numbers M N K or a class is wanted")
        found += [tuple(map(int, words))] if numbers else words
    return found or None


def _tuned(args) -> int:
    from tqdm import tqdm

    from ..benches.rows import writable
    from ..plots import draw
    from .ask import Impossible
    from .run import Plan, backend, tune

    side = backend(args.device, args.dtype, args.mode)
    shapes = _shapes(args.shape)
    for name in args.axes or ():
        if name not in side.names:
            raise Impossible(f"axis {name!r}: there are {', '.join(side.names)}")
    if args.verify:
        from . import verify

        return verify.run(side, args.verify, args.seed, args.threads, args.json)
    if args.dry_run:
        print(Plan(side, shapes, args.layout, args.threads, args.tiles))
        return 0
    if args.plot and args.plot != "-":
        if why := draw.missing():
            print(f"tune: {why}: the map is drawn in the terminal, into no file", file=sys.stderr)
        elif why := draw.unknown(args.plot):
            raise Impossible(why)
    writable(args.json, args.csv, args.t4, args.plot)
    with tqdm(unit="sample", leave=False, disable=None) as bar:

        def heard(name, done, total, best):
            bar.total, bar.n = total or bar.total, done or bar.n
            bar.set_description(name, refresh=False)
            bar.set_postfix_str(f"best so far {best}", refresh=False)
            bar.update(0)
            bar.refresh()

        found = tune(shapes, layout=args.layout, threads=args.threads, tiles=args.tiles, budget=args.budget,
                     save=not args.no_keep, side=side, heard=heard)  # fmt: skip
    print(found)
    _written(found, args)
    return 130 if found.interrupted else 0


def _written(found, args) -> None:
    if args.json:
        found.json(args.json)
    if args.csv:
        found.csv(args.csv)
    if args.t4:
        found.t4(args.t4)
    if args.plot and found.rows:
        from ..plots import blocks, draw

        if args.plot == "-" or draw.missing():
            print(blocks.heat(*draw.heat(found, *(args.axes or (None, None)))))
        else:
            found.plot(args.plot, *(args.axes or ()))
            print(f"drawn: {args.plot}")
