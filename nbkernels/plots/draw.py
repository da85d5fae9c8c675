"""Pictures with matplotlib: heat map over two tile sizes, speed or time against n, roofline, bars of ratios.

Colours are viridis and those of Okabe and Ito, which the colour-blind tell apart; axes have units; the footer has the
machine and versions. The file's name says which format: .png or .svg (or another of matplotlib's).
"""

from __future__ import annotations

import importlib.util
import os
import textwrap
from dataclasses import dataclass

# Okabe and Ito's eight: blue, vermillion, green, orange, purple, sky blue, yellow, black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
MARKERS = "osD^vP*X"
STYLE = {"font.size": 10, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True, "svg.fonttype": "none",
         "axes.spines.top": False, "axes.spines.right": False}  # fmt: skip
WIDTH, DPI = 7.2, 120  # inches and dots: 860 pixels, what a page of README shows


@dataclass(frozen=True)
class Grid:
    """Values over two sizes of tiles: rows of `values` are ys, None where nothing was measured."""

    x: str
    y: str
    xs: list
    ys: list
    values: list
    unit: str
    title: str
    meta: dict
    mark: tuple | None = None  # the default's (x, y)
    fastest: tuple | None = None


def missing() -> str | None:
    """Why nothing can be drawn, in a line, or None."""
    if importlib.util.find_spec("matplotlib") is None:
        return "matplotlib is not installed: pip install 'nbkernels[plot]'"
    return None


def unknown(file) -> str | None:
    """Why a file's name says of no kind of picture, in a line, or None."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    ending = os.path.splitext(file)[1].removeprefix(".").lower()
    known = ending in FigureCanvasAgg.get_supported_filetypes()
    return None if known else f"{file}: no picture's name, which ends in .png, .svg or .pdf"


def save(file, draw, *args) -> None:
    """draw(figure, *args) into a file, with the footer that it returns."""
    if why := missing():
        raise RuntimeError(why)
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.4), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        foot = draw(figure, *args)
        lines = textwrap.wrap(foot, 140)
        share = (0.04 + 0.13 * len(lines)) / figure.get_figheight()
        figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
        figure.text(0.01, 0.01, "\n".join(lines), fontsize=6.5, color="0.35", va="bottom")
        figure.savefig(file)


def footer(meta) -> str:
    """
    >>> footer({"cpu": "X", "cores": 2, "versions": {"numba": "1"}, "date": "2026-11-25"})
    'X, 2 cores; numba 1; 2026-11-25'
    """
    versions = ", ".join(f"{name} {version}" for name, version in meta.get("versions", {}).items())
    return "; ".join(filter(None, [f"{meta.get('cpu')}, {meta.get('cores')} cores", versions, meta.get("date")]))


# -- heat map ----------------------------------------------------------------------------------------------------------


def axes_of(found) -> list[str]:
    """The sizes of tiles that were swept, those with the most values first."""
    counts = {name: len({row.tiles[name] for row in found.rows}) for name in found.names}
    return sorted((name for name, count in counts.items() if count > 1), key=lambda name: -counts[name])


def heat(found, x=None, y=None) -> tuple[Grid]:
    """The Grid of a Tuning's first class: the best speed of every pair of two sizes, which is the default's GFLOP/s
    (geometric mean over shapes) times the ratio that the table has. The default's kc counts as far as k goes."""
    from ..tuning.ask import Impossible
    from ..tuning.race import mean

    swept = axes_of(found)
    for name in (x, y):
        if name is not None and name not in found.names:
            raise Impossible(f"axis {name!r}: there are {', '.join(found.names)}")
    x = x or next((name for name in swept if name != y), found.names[0])
    y = y or next((name for name in swept if name != x), next(name for name in found.names if name != x))
    first = found.rows[0].shape_class
    deepest = max(row.shape[2] for row in found.rows if row.shape_class == first)
    candidates = found.candidates(first)
    own = next((mean(speeds.values()) for _, _, speeds, what in candidates if what == "default"), None)
    best, mark = {}, None
    for tiles, ratio, speeds, what in candidates:
        deep = min(tiles["kc"], deepest) if what == "default" and "kc" in tiles else tiles.get("kc")
        at = tuple(deep if name == "kc" else tiles[name] for name in (x, y))
        best.setdefault(at, mean(speeds.values()) if own is None else own * ratio)  # the fastest comes first
        mark = at if what == "default" else mark
    xs, ys = (sorted({at[i] for at in best}) for i in range(2))
    row = found.rows[0]
    shapes = dict.fromkeys("x".join(map(str, r.shape)) for r in found.rows if r.shape_class == first)
    many = f"{', '.join(shapes)}, {row.dtype} {row.layout}, {row.threads} thread{'s' * (row.threads > 1)}, {row.device}"
    values = [[best.get((a, b)) for a in xs] for b in ys]
    return (Grid(x, y, xs, ys, values, "GFLOP/s", many, found.meta, mark, next(iter(best))),)


def tiles(figure, found, x=None, y=None) -> str:
    """The heat map of a Tuning, or a curve where one size alone was swept."""
    (made,) = heat(found, x, y)
    return curve(figure, made) if len(made.ys) == 1 else grid(figure, made)


def curve(figure, grid: Grid) -> str:
    """Speed against one size."""
    axes = figure.subplots()
    (speeds,) = grid.values
    points = [(x, speed) for x, speed in zip(grid.xs, speeds) if speed is not None]
    axes.plot(*zip(*points), marker="o", color=COLOURS[0], lw=2)
    if grid.mark and grid.mark[0] in grid.xs:
        at = grid.mark[0]
        axes.plot(at, dict(points)[at], "s", ms=14, mfc="none", mec=COLOURS[1], mew=2, label="default")
        axes.legend(frameon=False, fontsize=8)
    axes.set(xscale="log", xlabel=named(grid.x), ylabel=grid.unit, ylim=(0, None))
    axes.minorticks_off()
    axes.set_xticks(grid.xs, grid.xs, rotation=45 if len(grid.xs) > 12 else 0)
    axes.set_title(grid.title, fontsize=9, loc="left")
    return footer(grid.meta)


def grid(figure, grid: Grid) -> str:
    axes = figure.subplots()
    axes.grid(False)
    import numpy as np

    values = np.array([[np.nan if v is None else v for v in row] for row in grid.values], float)
    image = axes.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    axes.set_xticks(range(len(grid.xs)), grid.xs, rotation=45 if len(grid.xs) > 12 else 0)
    axes.set_yticks(range(len(grid.ys)), grid.ys)
    low, high = np.nanmin(values), np.nanmax(values)
    if values.size <= 260:
        for (j, i), value in np.ndenumerate(values):
            if not np.isnan(value):
                dark = value < (low + high) / 2
                axes.text(i, j, f"{value:.0f}", ha="center", va="center", fontsize=7, color="w" if dark else "k")
    if grid.mark and grid.mark[0] in grid.xs and grid.mark[1] in grid.ys:
        i, j = grid.xs.index(grid.mark[0]), grid.ys.index(grid.mark[1])
        axes.plot(i, j, "s", ms=17, mfc="none", mec="#D55E00", mew=2, label="default")
    if grid.fastest:
        i, j = grid.xs.index(grid.fastest[0]), grid.ys.index(grid.fastest[1])
        axes.plot(i, j, "o", ms=17, mfc="none", mec="#000000", mew=2, label="fastest")
    axes.set_xlabel(named(grid.x))
    axes.set_ylabel(named(grid.y))
    axes.set_title(grid.title, fontsize=9, loc="left")
    figure.colorbar(image, label=grid.unit)
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=8, markerscale=0.5, borderpad=0
    )
    return footer(grid.meta)


MEANING = {
    "mr": "mr, rows of a register tile", "nr": "nr, columns of a register tile", "kc": "kc, steps of k in a panel",
    "nb": "nb, columns of a block of B in L2", "mc": "mc, rows packed at once", "nc": "nc, columns packed at once",
    "bm": "bm, rows of a block's tile", "bn": "bn, columns of a block's tile", "bk": "bk, steps of k in shared memory",
    "tm": "tm, rows of a thread", "tn": "tn, columns of a thread",
}  # fmt: skip


def named(name) -> str:
    return MEANING.get(name, name)


# -- speed, roofline, ratios -------------------------------------------------------------------------------------------


def speed(figure, results) -> str:
    """GFLOP/s against n of square products: ours, every peer, and the peak where it was measured."""
    rows = [row for row in results["rows"] if row.get("gflops") and len(set(row["shape"])) == 1]
    if not rows:
        raise ValueError("no square product among the rows: there is no speed against n to draw")
    first = rows[0]
    same = ("bench", "dtype", "layout")
    rows = sorted((row for row in rows if all(row[k] == first[k] for k in same)), key=lambda row: row["shape"])
    rows = list({row["shape"][0]: row for row in rows}.values())  # of two numbers of threads the last
    axes = figure.subplots()
    peers = list(dict.fromkeys(peer for row in rows for peer in row["peers"]))
    for i, name in enumerate(["nbkernels", *peers]):
        points = [(row["shape"][0], row["gflops"] * (1 if i == 0 else row["ours_s"] / row["peers"][name]))
                  for row in rows if i == 0 or name in row["peers"]]  # fmt: skip
        axes.plot(*zip(*points), marker=MARKERS[i % 8], color=COLOURS[i % 8], label=name, lw=2 if i == 0 else 1.2)
    peaks = [(row["shape"][0], row["gflops"] / row["peak_share"]) for row in rows if row.get("peak_share")]
    if peaks:
        axes.plot(*zip(*peaks), color="k", ls="--", lw=1, label="peak of multiply-adds, measured")
    counts = " and ".join(map(str, sorted({row["threads"] for row in rows})))
    axes.set(xscale="log", xlabel="n of n x n matrices", ylabel="GFLOP/s", ylim=(0, None))
    axes.set_title(f"{first['bench']}, {first['dtype']} {first['layout']}, threads: {counts}", fontsize=9, loc="left")
    sizes = [row["shape"][0] for row in rows]
    axes.minorticks_off()
    axes.set_xticks(sizes, sizes)
    axes.legend(frameon=False, fontsize=8)
    return footer(results["meta"])


def time(figure, results) -> str:
    """Time against n: ours and every peer, of the rows of the first bench, dtype and number of threads."""
    rows = [row for row in results["rows"] if len(set(row["shape"])) == 1]
    if not rows:
        raise ValueError("no row has one size: there is no time against n to draw")
    first = rows[0]
    same = ("bench", "op", "dtype", "layout", "threads")
    rows = sorted((r for r in rows if all(r.get(k) == first.get(k) for k in same)), key=lambda row: row["shape"])
    axes = figure.subplots()
    peers = list(dict.fromkeys(peer for row in rows for peer in row["peers"]))
    for i, name in enumerate([None, *peers]):
        points = [(row["shape"][0], 1e6 * (row["ours_s"] if name is None else row["peers"][name]))
                  for row in rows if name is None or name in row["peers"]]  # fmt: skip
        axes.plot(*zip(*points), marker=MARKERS[i % 8], color=COLOURS[i % 8], lw=1.2 if i else 2,
                  label=name or first.get("ours", "nbkernels"))  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="us a call")
    axes.set_title(f"{first['bench']}, {first['dtype']}, threads: {first['threads']}", fontsize=9, loc="left")
    sizes = [row["shape"][0] for row in rows]
    axes.xaxis.minorticks_off()
    axes.set_xticks(sizes, sizes)
    axes.legend(frameon=False, fontsize=8)
    return footer(results["meta"])


def roofline(figure, results) -> str:
    """GFLOP/s against operations a byte, every row a point, under the measured peak and bandwidths of each number of
    threads."""
    peaks, rows = results["peaks"], [r for r in results["rows"] if r.get("gflops") and r.get("bytes")]
    if not rows:
        raise ValueError("no row says its operations and bytes: there is no roofline to draw")
    axes = figure.subplots()
    at = [r["gflops"] * r["ours_s"] * 1e9 / r["bytes"] for r in rows]
    low, high = min(min(at), 0.05) / 2, max(max(at), 50) * 2
    for colour, roof in zip(COLOURS[::-1], peaks):
        top, count = roof["gflops"], f"{roof['threads']} thread{'s' * (roof['threads'] != 1)}"
        for i, (level, width) in enumerate(roof["gb_s"].items()):
            knee = top / width
            axes.plot([low, knee, high], [low * width, top, top], color=colour, ls=("-", "--", "-.", ":")[i % 4], lw=1,
                      label=f"{level}, {width:.0f} GB/s, {count}")  # fmt: skip
    for i, name in enumerate(dict.fromkeys(r["bench"] for r in rows)):
        own = [(x, r["gflops"]) for x, r in zip(at, rows) if r["bench"] == name]
        axes.plot(*zip(*own), MARKERS[(i + i // 8) % 8], color=COLOURS[i % 8], label=name, ms=6, ls="")
    axes.set(xscale="log", yscale="log", xlabel="operations a byte that must move", ylabel="GFLOP/s")
    tops = ", ".join(f"{roof['gflops']:.0f} GFLOP/s by {roof['threads']}" for roof in peaks)
    axes.set_title(f"peak {tops} thread{'s' * (peaks[-1]['threads'] != 1)}", fontsize=9, loc="left")
    axes.legend(frameon=False, fontsize=7, loc="lower right", ncols=2)
    return footer(results["meta"])


def ratios(figure, results) -> str:
    """A bar a row: the best peer's time over ours, 1 marked."""
    rows = [r for r in results["rows"] if r["peers"]]
    if not rows:
        raise ValueError("no row has a peer: there are no ratios to draw")
    figure.set_size_inches(WIDTH, max(2.2, 0.9 + 0.19 * len(rows)))
    axes = figure.subplots()
    for i, row in enumerate(reversed(rows)):
        peer, seconds = min(row["peers"].items(), key=lambda item: item[1])
        ratio = seconds / row["ours_s"]
        faster = ratio >= 1
        axes.barh(
            i, ratio - 1, left=1, color=COLOURS[0] if faster else COLOURS[1], hatch="" if faster else "///", ec="w"
        )
        axes.text(max(ratio, 1), i, f" {ratio:.2f} {peer}", va="center", fontsize=7)
    axes.axvline(1, color="k", lw=1)
    axes.set_yticks(range(len(rows)), [label(row) for row in reversed(rows)], fontsize=7)
    axes.set(xscale="log", ylim=(-0.6, len(rows) - 0.4))
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.5), max(high, 2) * 1.8)
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if low <= tick <= max(high, 2)]
    axes.minorticks_off()
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("time of the best peer over ours (above 1: nbkernels is faster)", fontsize=8)
    axes.grid(axis="y", visible=False)
    return footer(results["meta"])


def label(row) -> str:
    from ..benches.rows import named

    return " ".join(filter(None, [named(row), row["dtype"], row.get("layout")]))


KINDS = {"speed": speed, "time": time, "roofline": roofline, "ratios": ratios}


def bench(file, results, kind=None) -> None:
    """Rows of a bench into a file, as one of KINDS; by default what they have most to say of."""
    rows = results["rows"]
    sizes = {tuple(row["shape"]) for row in rows if len(set(row["shape"])) == 1}
    by_size = len(sizes) > 2 and len(sizes) == len(rows) and len({row["bench"] for row in rows}) == 1
    usual = ("speed" if all(row.get("gflops") for row in rows) else "time") if by_size else "ratios"
    save(file, KINDS[kind or usual], results)
