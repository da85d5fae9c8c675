"""The tables of measured ratios in README and docs/, from the committed results: python bench/report.py [--check].

A result file, bench/results/NAME.json, is one run on one machine:

    {"meta": {"cpu": str, "cores": int, "versions": {package: str}, "date": "YYYY-MM-DD"},
     "rows": [{"bench": "addmm", "shape": [m, n, k], "dtype": "float32", "threads": 1, "layout": "NN",
               "ours_s": median seconds, "peers": {"NumPy": median seconds, ...},
               "gflops": 2mnk / ours_s / 1e9 or null, "peak_share": share of the measured FMA peak or null}]}

`nbkernels.commands.info.meta()` gives the meta; `python bench/bench_addmm.py --json FILE` writes such a file. A
document says where the rows of one bench go, or one line for each bench of a file, as a table that this script
rewrites:

    <!-- table NAME BENCH -->           <!-- table NAME -->
    <!-- end -->                        <!-- end -->

or, where BENCH is a key of the rows, such as size, one line for each value that it has, and for dtype sizes across.
The rows of bench_first_call.py ("call"), of bench_jitted.py ("jitted"), of bench_dask.py ("dask", "cluster"), of
bench_modes.py ("modes"), of bench_overhead.py ("overhead"), of bench_numpy_loops.py ("loops", with
nbkernels/in_numpy/measured.json), of bench_quantized.py ("linear_q"), of bench_language_model.py ("tokens") and of
device_check.py ("gpu") have times of their own; those of tests/array_api_suite.py ("standard") have counts.
`<!-- plans products -->` and `<!-- plans elementwise -->` are bench/plans.py's tables.

--check writes nothing and fails where documents and results are out of step.
"""

import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import plans

from nbkernels.benches.roofs import settle

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKERS = re.compile(r"(<!-- table (?P<name>[\w-]+)(?: (?P<bench>\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)
PLANS = re.compile(r"(<!-- plans (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def size(row):
    """How a row's shape prints: n for a square product.

    >>> size({"shape": [64, 64, 64]}), size({"shape": [8, 128, 1024]}), size({"shape": [16000000]})
    ('64', '8x128x1024', '16000000')
    """
    shape = row["shape"]
    return str(shape[0]) if len(set(shape)) == 1 else "x".join(map(str, shape))


def cell(rows, peers):
    """The least ratio to each peer over the rows (one for each layout), and the least share of peak."""
    if not rows:
        return ""
    ratios = [min(row["peers"][peer] / row["ours_s"] for row in rows) for peer in peers]
    shares = [row["peak_share"] for row in rows if row.get("peak_share") is not None]
    return " / ".join(f"{ratio:.2f}" for ratio in ratios) + (f" ({min(shares):.0%})" if shares else "")


def ratio(row):
    """The best peer's time over ours."""
    return min(row["peers"].values()) / row["ours_s"]


def geometric_mean(values):
    """
    >>> geometric_mean([1, 4])
    2.0
    """
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def columns_of(rows):
    """(dtype, threads) of the columns, and what stands above them."""
    columns = sorted({(row["dtype"], row["threads"]) for row in rows})
    return columns, [f"{dtype}, {threads} thread{'s' * (threads > 1)}" for dtype, threads in columns]


def classes(results, key="bench"):
    """Benches (or values of another key) down, dtypes and threads across; in a cell the best peer's time / ours:
    geometric mean, and the worst."""
    columns, heads = columns_of(results["rows"])
    lines = [["", *heads], ["---", *["---:"] * len(heads)]]
    for value in [*dict.fromkeys(row[key] for row in results["rows"]), "all"]:
        line = [f"{value:,}" if isinstance(value, int) else value.replace("_", " ")]
        for column in columns:
            rows = [r for r in results["rows"] if value in (r[key], "all") and (r["dtype"], r["threads"]) == column]
            found = list(map(ratio, rows))
            line.append(f"{geometric_mean(found):.2f} ({min(found):.2f}) of {len(found)}" if found else "")
        lines.append(line)
    found = list(map(ratio, results["rows"]))
    peers = dict.fromkeys(peer for row in results["rows"] for peer in row["peers"])
    return markdown_table(lines) + (
        f"\n\nTime of the best of {', '.join(peers)} over ours, geometric "
        f"mean (worst) of as many shapes; of all {len(found)} rows {geometric_mean(found):.2f}, "
        f"{sum(value >= 1 for value in found)} of them at least 1: interleaved medians of "
        f"{machine(results['meta'])}.\n"
    )


def peers_of(rows):
    """The peers that every row has."""
    every = dict.fromkeys(peer for row in rows for peer in row["peers"])
    return [peer for peer in every if all(peer in row["peers"] for row in rows)]


def markdown_table(lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine(meta):
    """
    >>> own = {"date": "2026-11-27", "cpu": "a processor", "cores": 2, "versions": {"numpy": "2"}}
    >>> machine(own | {"peers": {"numpy's OpenBLAS": {"version": "0.3", "architecture": "Zen", "threads": 2}}})
    "2026-11-27 on a processor, 2 cores, numpy 2, numpy's OpenBLAS 0.3 (Zen, 2 threads)"
    """
    versions = [f"{package} {version}" for package, version in meta["versions"].items()]
    for name, each in meta.get("peers", {}).items():
        threads = f"{each['threads']} thread{'s' * (each['threads'] > 1)}"
        versions += [f"{name} {each['version']} ({each['architecture']}, {threads})"] if name != "torch" else []
    return f"{meta['date']} on {meta['cpu']}, {meta['cores']} cores, {', '.join(versions)}"


def markdown(results, bench):
    """Sizes down, dtypes and threads across; in a cell peers' time / ours and the share of peak, worst layout."""
    rows = [row for row in results["rows"] if row["bench"] == bench]
    peers, (columns, heads) = peers_of(rows), columns_of(rows)
    lines = [[bench, *heads], ["---:"] * (len(heads) + 1)]
    for name in dict.fromkeys(map(size, rows)):
        groups = [[r for r in rows if size(r) == name and (r["dtype"], r["threads"]) == column] for column in columns]
        lines.append([name, *(cell(group, peers) for group in groups)])
    layouts = list(dict.fromkeys(row["layout"] for row in rows))
    return markdown_table(lines) + (
        f"\n\nTime of {' / '.join(peers)} over ours (share of the fastest sample of the FMA peak), in the worst of the "
        f"layouts {', '.join(layouts)}: interleaved medians of {machine(results['meta'])}.\n"
    )


def dtypes(results):
    """Dtypes down, sizes across; in a cell peers' time / ours, - where a peer has none, and the share of peak."""
    rows, peers = results["rows"], list(dict.fromkeys(peer for row in results["rows"] for peer in row["peers"]))
    sizes = sorted({row["shape"][0] for row in rows})
    lines = [["", *(f"n = {n}" for n in sizes)], ["---", *["---:"] * len(sizes)]]
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        line = [dtype]
        for n in sizes:
            row = next((r for r in rows if r["dtype"] == dtype and r["shape"][0] == n), None)
            if row is None:
                line.append("")
                continue
            ratios = (row["peers"][peer] / row["ours_s"] if peer in row["peers"] else None for peer in peers)
            texts = ("-" if r is None else f"{r:.2f}" if r < 10 else f"{r:.0f}" for r in ratios)
            line.append(" / ".join(texts) + f" ({row['peak_share']:.0%})")
        lines.append(line)
    return markdown_table(lines) + (
        f"\n\nTime of {' / '.join(peers)} over ours (share of the fastest sample of the peak of its multiply-add "
        f"instruction), n x n, one thread: interleaved medians of {machine(results['meta'])}.\n"
    )


def modes(results):
    """Classes of products down; by each number of threads a mode's time, or a peer's, over the default's: geometric
    mean, and how many are more than 5 % faster by a mode."""
    rows, threads = results["rows"], sorted({row["threads"] for row in results["rows"]})
    names = [*rows[0]["modes"], *peers_of(rows)]
    heads = [f"{name}, {count} thread{'s' * (count > 1)}" for count in threads for name in names]
    lines = [["", "products", *heads], ["---", *["---:"] * (len(heads) + 1)]]
    slower = dict.fromkeys(threads, 0)
    for bench in [*sorted({row["bench"] for row in rows}), "all"]:
        line = []
        for count in threads:
            group = [row for row in rows if bench in (row["bench"], "all") and row["threads"] == count]
            times = [[(row["modes"] | row["peers"])[name] / row["ours_s"] for row in group] for name in names]
            line += [f"{geometric_mean(each):.2f}" for each in times]
            slower[count] = sum(row["ours_s"] > 1.05 * min(row["modes"].values()) for row in group)
        lines.append([bench, str(len(group)), *line])
    told = ", ".join(f"{lost} by {count} thread{'s' * (count > 1)}" for count, lost in slower.items())
    return markdown_table(lines) + (
        f"\n\nTime of each mode and of {', '.join(peers_of(rows))} over that of the default, geometric means of random "
        f"products; more than 5 % slower than the fastest mode are {told}: interleaved medians of "
        f"{machine(results['meta'])}.\n"
    )


def language_model(results):
    """Forms of the weights down: tokens a second by numbers of threads, and the largest difference of a logit."""
    rows, threads = results["rows"], sorted({row["threads"] for row in results["rows"]})
    lines = [["weights", *(f"{count} thread{'s' * (count > 1)}" for count in threads), "largest difference"]]
    lines.append(["---", *["---:"] * (len(threads) + 1)])
    for name in dict.fromkeys(row["dtype"] for row in rows):
        group = [row for row in rows if row["dtype"] == name]
        rates = [f"{row['tokens_s']:.0f}" for row in sorted(group, key=lambda row: row["threads"])]
        lines.append([name, *rates, f"{group[0]['difference']:.1g} of {group[0]['largest']:.1f}"])
    return markdown_table(lines) + (
        f"\n\nTokens a second, medians by turns, and the largest difference of a logit from those of float32, on "
        f"{machine(results['meta'])}.\n"
    )


def jitted(results):
    """Dtypes down, sizes across; in a cell our time in jitted code, and the peers' over it."""
    rows, peers = results["rows"], list(dict.fromkeys(peer for row in results["rows"] for peer in row["peers"]))
    sizes = list(dict.fromkeys(row["shape"][0] for row in rows))
    lines = [["us (ratios)", *(f"n = {n}" for n in sizes)], ["---", *["---:"] * len(sizes)]]
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        cells = []
        for row in (row for row in rows if row["dtype"] == dtype):
            ratios = (f"{row['peers'][peer] / row['ours_s']:.2f}" if peer in row["peers"] else "-" for peer in peers)
            cells.append(f"{row['ours_s'] * 1e6:.3g} ({' / '.join(ratios)})")
        lines.append([dtype, *cells])
    spent = results["callers"]
    return markdown_table(lines) + (
        "\n\nMicroseconds of CPU time of `nb.mm(a, b, out=out)` in a jitted function, n x n, one thread, and the time "
        f"of {' / '.join(peers)} over it (- where Numba has none). A caller of `nb.linear` takes "
        f"{spent['compiled_s']:.1f} s of CPU time to compile, {spent['empty_s']:.1f} s with all kernels where none are "
        f"on disk, and {spent['loaded_s']:.2f} s from Numba's cache, where {spent['loaded_compiles'] or 'nothing'} is "
        "compiled. "
        f"Interleaved medians of {machine(results['meta'])}.\n"
    )


def dasks(results):
    """Operations and dtypes down, chunks across; in a cell dask's time over that of the same with ours, and of ours."""
    rows = results["rows"]
    chunks, ways = list(dict.fromkeys(row["chunk"] for row in rows)), ("registered", "ours")
    lines = [["", "", *(f"chunks of {c:,}" for c in chunks)], ["---", "---", *["---:"] * len(chunks)]]
    for name, dtype in dict.fromkeys((row["bench"], row["dtype"]) for row in rows):
        found = {row["chunk"]: row["seconds"] for row in rows if (row["bench"], row["dtype"]) == (name, dtype)}
        told = {c: [f"{each['dask'] / each[way]:.3g}" if way in each else "-" for way in ways]
                for c, each in found.items()}  # fmt: skip
        lines.append([f"`{name}`", dtype, *(" / ".join(told.get(c, ())) for c in chunks)])
    same = [row["same"] for row in rows if "float" not in row["dtype"] and "complex" not in row["dtype"]]
    equal = list(results["bits"].values())
    return markdown_table(lines) + (
        "\n\nCPU time of dask alone over that with `register(floats=True)` and `use_in_numpy()` / over that of this "
        "library's own graph (- where it has none), dask's threads, one thread a call (empty: dask alone takes longer "
        f"than was waited for). Of whole numbers all gave the same in {sum(same)} of {len(same)} rows; by chunks of "
        f"4,096 along k `mm` had the bits of one call for {sum(equal)} of {len(equal)} dtypes. Interleaved medians of "
        f"{machine(results['meta'])}.\n"
    )


def clusters(results):
    """Runs of examples/dask_cluster.py down: workers, data, what lay on disk, seconds and what was lost."""
    rows = sorted(results["rows"], key=lambda row: row["left_at_kill"] is not None)
    one = next(row for row in rows if row["workers"] == 1)
    lines = [["workers of one thread", "x", "of it on disk", "seconds", ""], ["---", "---:", "---:", "---:", "---"]]
    for row in rows:
        work = row["mib"] / one["mib"]
        told = "the" if work == 1 else f"{work:.0f} times the"
        told += f" work of one worker, {work * one['seconds'] / row['seconds']:.2f} times its rate"
        if row["left_at_kill"] is not None:
            told = f"one killed (SIGKILL) with {row['left_at_kill']} of {row['products']} products of chunks left"
        seconds = f"{row['seconds']:.1f}"
        told = "" if row is one else told
        lines.append([str(row["workers"]), f"{row['mib']:,} MiB", f"{row['disk_mib']:,} MiB", seconds, told])
    meta = results["meta"]
    return markdown_table(lines) + (
        f"\n\nWorkers that may take {one['memory']} each. All results of {one['mib']:,} MiB have the bits of one call: "
        f"{'yes' if results['equal'] else 'no'}. One run of {machine(meta)}, under a load of {meta['load']} by other "
        "programs.\n"
    )


def first_calls(results):
    """Calls down, seconds of CPU time from an empty cache and from a full one, and of the worst of later calls."""
    heads = {"empty_s": "empty cache, s", "full_s": "full cache, s", "worst_s": "worst of calls 2 to 40, s"}
    heads = {key: head for key, head in heads.items() if any(key in row for row in results["rows"])}
    lines = [["first call", *heads.values()], ["---", *["---:"] * len(heads)]]
    lines += [[row["call"], *(f"{row[key]:.2f}" if key in row else "" for key in heads)] for row in results["rows"]]
    return markdown_table(lines) + (
        f"\n\nCPU time of {'the calling thread' if 'worst_s' in heads else 'a process'} over `import numpy`: "
        f"medians of {machine(results['meta'])}.\n"
    )


def overheads(results):
    """Calls down, microseconds by the kind of arrays across."""
    kinds = list(results["rows"][0])[2:]
    lines = [["us a call", *kinds], ["---", *["---:"] * len(kinds)]]
    for row in results["rows"]:
        times = (f"{row[kind]:.3g}" if kind in row else "" for kind in kinds)
        lines.append([f"{row['call']}, {row['n']} x {row['n']}", *times])
    return markdown_table(lines) + (
        "\n\nfloat32, one thread, with results of their own; torch is its own call. Of device arrays it is the host's "
        "time of a call made before, without the driver's: doubles take its place. Interleaved medians of "
        + machine(results["meta"])
        + ".\n"
    )


def programs(results):
    """Programs of which something ran here down, speed over NumPy's and share of products across; the others in one."""
    rows = results["rows"]
    here = [row for row in rows if row["products"] or row["loops"]]
    others = [row["ratio"] for row in rows if row not in here]
    lines = [["program", "times as fast", "products here"], ["---", "---:", "---:"]]
    for row in sorted(here, key=lambda row: -row["ratio"]):
        lines.append([row["program"], f"{row['ratio']:.2f}", f"{row['products'] or 0:.0%}"])
    lines.append([f"the {len(others)} others: nothing runs here", f"{min(others):.2f} to {max(others):.2f}", "0%"])
    return markdown_table(lines) + (
        "\n\nCPU time of NumPy alone over that under `use_in_numpy`, one thread, the least of "
        f"{rows[0]['rounds']} rounds in turns, on {machine(results['meta'])}.\n"
    )


def replaced(width):
    """ufunc -> the loops that use_in_numpy replaces on vectors of `width` bits: of integers and bool, of float16, and,
    with floats=True, of the others; each dtype -> (from how many elements on, gain), as measured.json has it."""
    from nbkernels.in_numpy import which

    measured = json.loads((ROOT / "nbkernels" / "in_numpy" / "measured.json").read_text(encoding="utf-8"))[width]
    found = {}
    for name, figures in measured.items():
        for dtype, (elements, gain) in figures.items():
            column = 2 if dtype in which.FLOATS else int(dtype in which.HALF)
            if gain >= which.GAIN and not (name in which.ROUNDED and column):
                found.setdefault(name, ({}, {}, {}))[column][dtype] = elements, gain
    return found


def loops(results):
    """NumPy's inner loops that are replaced, those of the same dtypes and sizes in one line; in a cell the gains."""
    found, groups = replaced(re.search(r"vectors of (\d+) bits", results["meta"]["cpu"])[1]), {}
    for name, (integers, *floats) in found.items():
        alike = tuple(integers), *(tuple((dtype, elements) for dtype, (elements, _) in cell.items()) for cell in floats)
        groups.setdefault(alike, []).append(name)
    lines = [["loops", "integers, bool", "float16", "with `floats=True`"], ["---"] * 4, squares(results, found)]
    for names in sorted(groups.values(), key=len, reverse=True):
        cells = [[(dtype, *figures) for name in names for dtype, figures in found[name][i].items()] for i in range(3)]
        lines.append([", ".join(f"`{name}`" for name in names), *map(gains, cells, (8, 1, 4))])
    return markdown_table(lines) + (
        "\n\nNumPy's time over ours: for element-wise loops the geometric mean over the sizes from the named number of "
        "elements on, into an array that is there; for products over the shapes of `bench/bench_numpy_loops.py`. "
        f"Interleaved, on {machine(results['meta'])}.\n"
    )


def squares(results, found):
    """The line of square products: a range over the dtypes of each cell for each size."""
    shapes = {"16": "3: 4096", "64": "4: 262144", "200": "5: 8000000"}
    rows = {row["dtype"]: row["ratios"] for row in results["rows"] if row["ufunc"] == "matmul"}
    cells = [[span([rows[dtype][key] for dtype in cell], "{:.3g}") for key in shapes.values()] if cell else []
             for cell in found["matmul"]]  # fmt: skip
    return [f"`matmul` of n x n, n = {' / '.join(shapes)}", *map(" / ".join, cells)]


def devices(results):
    """Calls on a GPU down: what is reached, and peers' time / ours."""
    rows, peers = results["rows"], ["torch", "CuPy"]
    lines = [["", "", *peers], ["---", *["---:"] * (1 + len(peers))]]
    for row in rows:
        rate = f"{row['gflops'] / 1e3:.1f} TFLOP/s" if row["gflops"] else f"{row['gb_s']:,.0f} GB/s"
        ratios = (f"{row['peers'][peer] / row['ours_s']:.2f}" if peer in row["peers"] else "" for peer in peers)
        layout = f", {row['layout']}" if "layout" in row else ""
        lines.append([f"{row['bench']} of {size(row)}, {row['dtype']}{layout}", rate, *ratios])
    meta = results["meta"]
    return markdown_table(lines) + (
        f"\n\nTime of torch / CuPy over ours, by the device's clock in turns, on {meta['date']}, {meta['cpu']}, "
        "torch's TF32 off; products of less than 100 us in a CUDA graph; bytes of each array counted once.\n"
    )


def standard(results):
    """Files of the array API's own tests down; those in which nothing fails in one line."""
    rows, meta = results["rows"], results["meta"]
    lines = [["tests of", "how many", "fail for NumPy", "fail here", "here alone"], ["---", *["---:"] * 4]]
    failing = [row for row in rows if row["numpy_failed"] or row["ours_failed"]]
    others = [row for row in rows if row not in failing]
    names = ", ".join(row["file"].removeprefix("test_").removesuffix("_functions").replace("_", " ") for row in others)
    for label, group in (*((row["file"].removeprefix("test_").removesuffix("_functions").replace("_", " "), [row])
                           for row in failing), (names, others), ("all", rows)):  # fmt: skip
        alone = sum(len({*row["ours_failed"]} - {*row["numpy_failed"]}) for row in group)
        counts = [sum(len(row[key]) for row in group) for key in ("numpy_failed", "ours_failed")]
        lines.append([label, *(f"{n:,}" for n in (sum(row["tests"] for row in group), *counts, alone))])
    return markdown_table(lines) + (
        f"\n\n[array-api-tests]({meta['suite']}) at {meta['commit'][:7]}, {meta['examples']} examples of each test, "
        f"by `python -m tests.array_api_suite`: {machine(meta)}.\n"
    )


def quantized(results):
    """Threads and rows of x down; in a cell milliseconds, how many times as fast as by float32 weights, and GB/s."""
    rows, names = results["rows"], list(results["rows"][0]["seconds"])
    lines = [["threads, rows", *names], ["---", *["---:"] * len(names)]]
    for row in rows:
        seconds, cells = row["seconds"], []
        for name in names:
            told = [f"{seconds['float32'] / seconds[name]:.1f}"] if name != "float32" else []
            told += [f"{row['gb_s'][name]:.0f} GB/s"] if name in row["gb_s"] else []
            cells.append(f"{seconds[name] * 1e3:.2f} ({', '.join(told)})")
        lines.append([f"{row['threads']}, {row['shape'][0]}", *cells])
    copies = (
        f"{max(row['copy_gb_s'] for row in rows if row['threads'] == threads):.0f} by {threads}"
        for threads in dict.fromkeys(row["threads"] for row in rows)
    )
    meta = results["meta"]
    return markdown_table(lines) + (
        "\n\nMilliseconds (times as fast as float32, bytes of weights a second) of rows by 4096 x 4096: medians, in "
        f"turns, of {machine(meta)}, under a load of {meta['load']} by other programs; a copy within memory moved "
        f"{' and '.join(copies)} GB/s.\n"
    )


def span(values, form):
    """
    >>> span([1.25, 3], "{:.2f}"), span([1, 1], "{:,}")
    ('1.25-3.00', '1')
    """
    return "-".join(dict.fromkeys(form.format(value) for value in (min(values), max(values))))


def gains(found, every):
    """A cell: (dtype, elements, gain) of each loop as a range, and which dtypes, where they are not all `every`.

    >>> gains([("int8", 100, 1.5), ("int16", 1000, 3.25)], 8)
    'int8, int16: 1.5-3.2 from 100-1,000'
    """
    if not found:
        return ""
    dtypes, sizes, gain = zip(*found)
    told = span(gain, "{:.2g}") + (f" from {span(sizes, '{:,}')}" if max(sizes) > 1 else "")
    names = list(dict.fromkeys(dtypes))
    return told if len(names) == every else f"{', '.join(names)}: {told}"


def settled(results):
    """The same, shares of a peak by the fastest sample of it that any row of this dtype and as many threads was held
    against, or reached."""
    for row in results["rows"]:
        rate = row.get("gflops") or row.get("gops")
        if rate and row.get("peak_share") and "peak_rate" not in row:  # one of before 2026-11-27
            most = rate / row["peak_share"]
            if row["bench"] == "mirror":  # which makes one triangle, and counted the other one, too
                rate *= (1 + 1 / row["shape"][0]) / 2
            row |= {"peak": row["dtype"], "rate": rate, "peak_rate": max(rate, most)}
    settle(results["rows"])
    return results


def rewrite(text, directory):
    """The text with every marked table made anew: from its result file in `directory`, or from the code."""

    def table(match):
        results = settled(json.loads((directory / f"{match['name']}.json").read_text(encoding="utf-8")))
        bench = match["bench"] or "bench"
        if bench == "call":
            return match[1] + first_calls(results) + match[4]
        if bench == "jitted":
            return match[1] + jitted(results) + match[4]
        if bench == "dask":
            return match[1] + dasks(results) + match[4]
        if bench == "cluster":
            return match[1] + clusters(results) + match[4]
        if bench == "modes":
            return match[1] + modes(results) + match[4]
        if bench == "overhead":
            return match[1] + overheads(results) + match[4]
        if bench == "programs":
            return match[1] + programs(results) + match[4]
        if bench == "loops":
            return match[1] + loops(results) + match[4]
        if bench == "gpu":
            return match[1] + devices(results) + match[4]
        if bench == "tokens":
            return match[1] + language_model(results) + match[4]
        if bench == "standard":
            return match[1] + standard(results) + match[4]
        if bench == "linear_q":
            return match[1] + quantized(results) + match[4]
        if bench == "dtype":
            return match[1] + dtypes(results) + match[4]
        by_key = bench in results["rows"][0]
        return match[1] + (classes(results, bench) if by_key else markdown(results, bench)) + match[4]

    def planned(match):
        return match[1] + markdown_table(plans.table(match["name"])) + "\n" + match[3]

    return PLANS.sub(planned, MARKERS.sub(table, text))


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    stale = []
    for document in DOCUMENTS:
        old = document.read_text(encoding="utf-8")
        new = rewrite(old, ROOT / "bench" / "results")
        if new != old:
            stale.append(document.name)
            if not arguments:
                document.write_text(new, encoding="utf-8")
    if arguments and stale:
        print(f"{', '.join(stale)}: not what bench/results says: run python bench/report.py", file=sys.stderr)
    return int(bool(arguments and stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
