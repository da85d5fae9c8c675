"""`python -m nbkernels bench`: its options, its progress, its words."""

from __future__ import annotations

import sys

from ..dispatch.errors import meant

SUITES = ("gemm", "shapes", "dtypes", "elementwise", "reduce", "batch", "overhead", "tiles", "cuda", "addmm", "add")
PEERS = ("NumPy", "torch", "MKL", "numexpr", "CuPy")
KINDS = ("speed", "time", "roofline", "ratios")


def options(parser, whole, seconds) -> None:
    """The command's options; light, for --help. `whole` and `seconds` read numbers."""
    add = parser.add_argument
    add("what", nargs="*", metavar="WHAT", help=f"{', '.join(SUITES)} (gemm shapes elementwise reduce batch overhead)")
    add(
        "--with",
        dest="own",
        metavar="MODULE:FUNCTION",
        help="rows of your own: function(n, dtype) -> {name: call}, the first one yours (float32, n of --sizes)",
    )
    add("--dtype", help="only of this dtype")
    add("--device", choices=["cpu", "cuda"], default="cpu", help="(%(default)s)")
    add("--threads", type=whole, nargs="+", metavar="N", help="(all)")
    add("--sizes", type=whole, nargs="+", help="n of each row, for n x n matrices and n elements")
    add("--peers", nargs="*", metavar="NAME", help=f"only these of {', '.join(PEERS)} (all that are installed)")
    add("--quick", action="store_true", help="a few rows of each, in a minute")
    add("--seconds", type=seconds, help="time spent on each row (0.5, quick 0.1)")
    add("--json", metavar="FILE", help="write the rows there too, as bench/report.py and --compare read them")
    add("--csv", metavar="FILE", help="the same as a table, with the configuration in each line")
    add("--plot", metavar="FILE", help="draw them: .png or .svg (needs matplotlib; the table has bars)")
    add(
        "--kind",
        choices=KINDS,
        help="of picture (speed, else time, against n, where all rows have one; else bars of ratios)",
    )
    add("--compare", nargs=2, metavar=("A", "B"), help="hold two files of rows against each other, and measure nothing")


def run(args) -> int:
    """Exit code: 0, 1 where --compare finds a row slower, 2 for what cannot be had, 130 after Ctrl-C."""
    from .rows import Unreadable, compare

    if args.compare:
        try:
            text, slower = compare(*args.compare)
        except Unreadable as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
        print(text)
        return int(slower > 0)
    from .own import Unusable

    if wrong := _wrong(args):
        print(f"bench: {wrong}", file=sys.stderr)
        return 2
    try:
        return _measured(args)
    except Unusable as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2


def _wrong(args) -> str | None:
    """What was asked for and cannot be had, in a line."""
    for given, known, what in ((args.what, SUITES, "bench"), (args.peers or (), PEERS, "peer")):
        for each in given:
            if each not in known:
                return f"no {what} {each!r}" + (meant(each, known) or f": {', '.join(known)}")
    if args.device == "cuda" or "cuda" in args.what:
        from ..tuning.cuda import missing

        if lacks := missing():
            return f"cuda: {lacks}"
    from . import peers

    if lacks := [each for each in args.peers or () if each not in peers.found()]:
        return f"peer {', '.join(lacks)} not installed; there are {', '.join(peers.found())}"
    from ..cpu.runtime import threads
    from ..dtypes import DTYPES

    if args.plot and args.plot != "-":
        from ..plots import draw

        if not draw.missing() and (why := draw.unknown(args.plot)):
            return why
    if args.dtype and args.dtype not in DTYPES:
        return f"no dtype {args.dtype!r}: {', '.join(DTYPES)}"
    if most := [count for count in args.threads or () if count > threads.count()]:
        return f"--threads {most[0]}: there are {threads.count()}"
    return None


def _measured(args) -> int:
    from tqdm import tqdm

    from ..cpu.runtime import threads
    from ..plots import columns
    from . import own
    from .measure import ROUNDS, chosen, machine_peaks, row
    from .roofs import busy, lifted, settle
    from .rows import table, writable

    writable(args.json, args.csv, args.plot)
    counts = args.threads or [threads.count()]
    cases = list(own.cases(own.named(args.own), args.dtype, args.sizes)) if args.own else []
    if args.what or not args.own:
        cases += chosen(args.what, args.quick, args.dtype, args.sizes, args.device)
    todo = [(case, count if case.parallel else 1) for count in counts for case in cases]
    todo = list(dict.fromkeys(todo))
    if not todo:
        print("bench: nothing fits what was asked for; bench dtypes has products of other dtypes", file=sys.stderr)
        return 2
    seconds = args.seconds if args.seconds is not None else 0.1 if args.quick else 0.5
    rows, status = [], 0
    with tqdm(todo, unit="row", leave=False, disable=None) as bar:
        try:
            for case, count in bar:
                bar.set_description(f"{case.bench} {'x'.join(map(str, case.shape))} {case.dtype}")
                rows.append(row(case, count, args.peers, seconds, 5 if args.quick else ROUNDS))
        except KeyboardInterrupt:
            status = 130
    settle(rows)
    print(table(rows))
    for count in _counts(rows):
        print(columns.line(_peak(lifted(machine_peaks(count, "float32"), rows))))
    if said := busy(rows):
        print(columns.line(said))
    if status:
        print("interrupted: these rows were measured until then", file=sys.stderr)
    _written(args, rows)
    return status


def _counts(rows) -> list[int]:
    """Of the threads that rows were measured by: a roof for each."""
    return sorted({row["threads"] for row in rows if row["device"] == "cpu"})


def _peak(found) -> str:
    """What shares are of, in a line."""
    widths = ", ".join(f"{level} {width:.0f}" for level, width in found["gb_s"].items())
    count = f"{found['threads']} thread{'s' * (found['threads'] > 1)}"
    speed = f"{found['gflops']:.0f} GFLOP/s of float32"
    return f"peak by {count}: {speed}, copies {widths} GB/s, a launch {found['launch_us']:.2f} us"


def _written(args, rows) -> None:
    import json

    from ..commands import info
    from .measure import machine_peaks
    from .rows import write_csv

    results = {"meta": info.meta(), "rows": rows}
    if args.plot and args.kind == "roofline":
        from .roofs import lifted

        results["peaks"] = [lifted(machine_peaks(count, "float32"), rows) for count in _counts(rows)]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    if args.csv:
        write_csv(rows, args.csv)
    if args.plot and rows and args.plot != "-":
        from ..plots import draw

        if why := draw.missing():
            print(f"bench: {why}; the table above has bars", file=sys.stderr)
        else:
            try:
                draw.bench(args.plot, results, args.kind)
                print(f"drawn: {args.plot}")
            except ValueError as error:
                print(f"bench: {error}", file=sys.stderr)
