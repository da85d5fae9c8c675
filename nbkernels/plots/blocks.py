"""Pictures of characters, for who has no screen: a heat map of shaded blocks, bars of ratios."""

from __future__ import annotations

SHADES = " ░▒▓█"
PARTS = " ▏▎▍▌▋▊▉█"


def heat(grid) -> str:
    """A heat map: the darker a cell, the faster; each says its number too.

    >>> from nbkernels.plots.draw import Grid
    >>> print(heat(Grid("kc", "nb", [128, 256], [64], [[50.0, 100.0]], "GFLOP/s", "f32", {})))
    f32: GFLOP/s
    nb \\ kc    128     256
    64      ░   50  █  100
    """
    known = [value for row in grid.values for value in row if value is not None]
    low, high = min(known), max(known)
    width = max(len(f"{grid.y} \\ {grid.x}"), *(len(str(y)) for y in grid.ys))

    def cell(value):
        if value is None:
            return " " * 8
        level = (value - low) / (high - low) if high > low else 1
        return f" {SHADES[1 + round(level * (len(SHADES) - 2))]} {value:4.0f} "

    lines = [f"{grid.title}: {grid.unit}",
             f"{f'{grid.y} {chr(92)} {grid.x}':{width}}" + "".join(f"{x:7} " for x in grid.xs)]  # fmt: skip
    lines += [f"{y!s:{width}}" + "".join(map(cell, row)) for y, row in zip(grid.ys, grid.values)]
    marks = (("fastest", grid.fastest), ("default", grid.mark))
    lines += [f"{what}: {grid.x} {at[0]}, {grid.y} {at[1]}" for what, at in marks if at]
    return "\n".join(line.rstrip() for line in lines)


def bar(ratio, width=12, full=2.0) -> str:
    """A ratio as a bar, `full` (and more) the whole width.

    >>> bar(1.0), bar(0.5, 4), bar(9.0, 4)
    ('██████      ', '█   ', '████')
    """
    eighths = round(min(ratio / full, 1) * width * 8)
    text = "█" * (eighths // 8) + PARTS[eighths % 8].strip()
    return f"{text:{width}}"
