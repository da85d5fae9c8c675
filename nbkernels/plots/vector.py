"""Drawings as lines of SVG, for a page: curves of a function, arrays as rectangles. They take the page's colour."""

from __future__ import annotations

import math

WIDTH, HEIGHT = 320, 240
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # Okabe and Ito's, as draw.py's
JUMP = 0.9  # of two neighbours in a curve: a step of floor is 1
CELL, GAP = 14, 26  # pixels of a row or column, and between arrays


def curves(what, xs, lines, reach=4.0) -> str:
    """A figure of curves over xs, both axes from -reach to reach: `lines` is {label: values}.

    >>> curves("f", [0.0, 1.0], {"": [0.0, 0.5]}).count("<polyline")
    1
    """

    def at(x, y):
        return f"{(x + reach) / (2 * reach) * WIDTH:.1f},{(reach - y) / (2 * reach) * HEIGHT:.1f}"

    parts = [_line(0, HEIGHT / 2, WIDTH, HEIGHT / 2), _line(WIDTH / 2, 0, WIDTH / 2, HEIGHT)]
    for tick in (-reach / 2, reach / 2):
        x, y = at(tick, tick).split(",")
        parts += [_text(f"{tick:g}", float(x), HEIGHT / 2 + 14), _text(f"{tick:g}", WIDTH / 2 - 12, float(y) + 4)]
    for values, colour in zip(lines.values(), COLOURS):
        for piece in pieces(xs, values, reach):
            points = " ".join(at(x, y) for x, y in piece)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    legend = [label for label in lines if label]
    for i, (label, colour) in enumerate(zip(legend, COLOURS)):
        parts.append(_text(label, WIDTH * (i + 0.5) / len(legend), HEIGHT + 20, colour))
    return _figure(what, WIDTH, HEIGHT + 26 * bool(legend), parts)


def pieces(xs, values, reach):
    """What can be drawn in one stroke: finite, in sight, without a jump.

    >>> pieces([0, 1, 2, 3], [0.0, 0.5, 2.0, float("nan")], 4)
    [[(0, 0.0), (1, 0.5)], [(2, 2.0)]]
    """
    found, last = [], None
    for x, y in zip(xs, values):
        seen = math.isfinite(y) and abs(y) <= reach
        if seen and last is not None and abs(y - last) < JUMP:
            found[-1].append((x, y))
        elif seen:
            found.append([(x, y)])
        last = y if seen else None
    return found


def shapes(what, arrays) -> str:
    """A figure of arrays in a row: (name, letters as "bmk", sizes) each, a stack as sheets one behind the other.

    >>> "(m, k)" in shapes("mm", [("self", "mk", (4, 6))])
    True
    """
    parts, left, low = [], 8.0, 0.0
    for name, letters, sizes in arrays:
        *stack, height, width = (1,) * (2 - len(sizes)) + tuple(sizes)
        sheets = math.prod(stack)
        wide, high = CELL * width, CELL * height
        label = f"({', '.join(letters)}{',' * (len(letters) == 1)})"
        room = max(wide + 5 * (sheets - 1), 7 * len(label), 7 * len(name))
        for i in reversed(range(sheets)):
            x, y = left + 5 * i, 24 + 5 * (sheets - 1 - i)
            parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide}" height="{high}" fill="{COLOURS[0]}" '
                         'fill-opacity=".25" stroke="currentColor"/>')  # fmt: skip
        bottom = 24 + 5 * (sheets - 1) + high
        parts += [_text(name, left, 15, anchor="start"), _text(label, left, bottom + 16, anchor="start")]
        left, low = left + room + GAP, max(low, bottom + 22)
    return _figure(what, left - GAP + 8, low, parts)


def _line(x, y, right, low) -> str:
    return f'<line x1="{x}" y1="{y}" x2="{right}" y2="{low}" stroke="currentColor" stroke-opacity=".4"/>'


def _text(text, x, y, colour="currentColor", anchor="middle") -> str:
    size = f'font-size="12" text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {size} fill="{colour}">{text}</text>'


def _figure(what, width, height, parts) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" style="max-width:100%"'
    head = f'<svg {size} role="img" aria-label="{what}">'
    return f"<figure>{head}{''.join(parts)}</svg></figure>"
