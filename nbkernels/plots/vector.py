"""Drawings as lines of SVG, for a page, in its colour: curves, arrays as rectangles, cells with numbers, steps."""

from __future__ import annotations

import html
import math
import re

WIDTH, HEIGHT = 320, 240
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # Okabe and Ito's, as draw.py's
JUMP = 0.9  # of two neighbours in a curve: a step of floor is 1
CELL, GAP = 14, 26  # pixels of a row or column, and between arrays
LETTER, LINE = 7.3, 22  # pixels of a monospaced letter of 12, and of a line of cells
SUMMED = COLOURS[1]


def curves(what, xs, lines, reach=4.0) -> str:
    """A figure of curves over xs, both axes from -reach to reach: `lines` is {label: values}.

    >>> curves("f", [0.0, 1.0], {"": [0.0, 0.5]}).count("<polyline")
    1
    """

    at, parts = _plane(reach)
    for values, colour in zip(lines.values(), COLOURS):
        for piece in pieces(xs, values, reach):
            points = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in piece)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    legend = [label for label in lines if label]
    for i, (label, colour) in enumerate(zip(legend, COLOURS)):  # in two columns
        x, y = 30 + WIDTH // 2 * (i % 2), HEIGHT + 20 * (i // 2 + 1)
        parts.append(f'<rect x="{x}" y="{y - 9}" width="9" height="9" fill="{colour}"/>')
        parts.append(_text(label, x + 15, y, anchor="start"))
    return _figure(what, WIDTH, HEIGHT + 20 * -(-len(legend) // 2) + 6 * bool(legend), parts)


def _plane(reach):
    """Where (x, y) lies in a picture whose axes go from -reach to reach, and the parts that draw these."""

    def at(x, y):
        return (x + reach) / (2 * reach) * WIDTH, (reach - y) / (2 * reach) * HEIGHT

    parts = [_line(0, HEIGHT / 2, WIDTH, HEIGHT / 2), _line(WIDTH / 2, 0, WIDTH / 2, HEIGHT)]
    for tick in (-reach / 2, reach / 2):
        x, y = at(tick, tick)
        parts += [_text(f"{tick:g}", x, HEIGHT / 2 + 14), _text(f"{tick:g}", WIDTH / 2 - 12, y + 4)]
    return at, parts


def arrow(what, point, to, label, reach=4.0) -> str:
    """A figure of the complex plane with an arrow from one number to what becomes of it.

    >>> arrow("conj", 3 + 2j, 3 - 2j, "out").count("<circle")
    2
    """
    at, parts = _plane(reach)
    (x, y), (right, low) = at(point.real, point.imag), at(to.real, to.imag)
    line = _line(x, y, right, low).replace("/>", ' stroke-dasharray="4 3"/>')
    ends = [(x, y, "self", COLOURS[0]), (right, low, label, COLOURS[1])]
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>' for x, y, _, colour in ends]
    texts = [_text(text, x + 10, y - 8, anchor="start") for x, y, text, _ in ends]
    return _figure(what, WIDTH, HEIGHT, [*parts, line, *dots, *texts])


def bands(what, xs, lines) -> str:
    """A figure of where each of `lines`, {label: bools over xs}, is true: a thick line, or a dot for one x alone; an x
    alone where it is not is a ring.

    >>> bands("f", [-4, -2, 0, 2, 4], {"a": [False, False, True, False, False], "b": [True] * 5}).count("<circle")
    1
    """
    first, last, parts, y = xs[0], xs[-1], [], 4
    left = 8 + LETTER * max(map(len, lines))

    def at(x):
        return left + (x - first) / (last - first) * (WIDTH - left - 8)

    for (label, values), colour in zip(lines.items(), COLOURS):
        y += LINE
        parts += [_text(label, 0, y + 4, anchor="start"), _line(at(first), y, at(last), y)]
        runs = list(_runs(values))
        holes = [not true and start == end for true, start, end in runs]
        for (true, start, end), before, after in zip(runs, [False, *holes], [*holes[1:], False]):
            x, right = at(xs[start]) + 5 * before, at(xs[end]) - 5 * after
            if true and start < end:
                parts.append(_line(round(x, 1), y, round(right, 1), y, colour, 6))
            elif start == end:
                fill = f'fill="{colour}"' if true else f'fill="none" stroke="{colour}" stroke-width="2"'
                parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="5" {fill}/>')
    ticks = [_text(f"{x:g}", at(x), y + LINE) for x in (first, first / 2, 0, last / 2, last)]
    return _figure(what, WIDTH, y + LINE + 6, [*parts, *ticks])


def _runs(values):
    """(value, first index, last index) of each run of equal values."""
    start = 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[start]:
            yield values[start], start, i - 1
            start = i


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
    """A figure of arrays in a row: (name, letters as "bmk", sizes) each, a stack as sheets one behind the other. Edges
    that the last of them, the result, has not are coloured: they are summed over.

    >>> "k: summed over" in shapes("mv", [("self", "mk", (4, 6)), ("vec", "k", (6,)), ("out", "m", (4,))])
    True
    """
    parts, left, low = [], 8.0, 0.0
    summed = {letter for _, letters, _ in arrays for letter in letters} - set(arrays[-1][1])
    for name, letters, sizes in arrays:
        *stack, height, width = (1,) * (2 - len(sizes)) + tuple(sizes)
        sheets = math.prod(stack)
        wide, high, back = CELL * width, CELL * height, 5 * (sheets - 1)
        label = f"({', '.join(letters)}{',' * (len(letters) == 1)})"
        room = max(wide + back, LETTER * len(label), LETTER * len(name))
        for i in reversed(range(sheets)):
            x, y = left + 5 * i, 24 + back - 5 * i
            parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide}" height="{high}" fill="{COLOURS[0]}" '
                         'fill-opacity=".25" stroke="currentColor"/>')  # fmt: skip
        top, bottom = 24 + back, 24 + back + high
        ends = (left, bottom, left + wide, bottom), (left, top, left, bottom), (left, top, left + back, 24)
        parts += [
            _line(*map(round, end), SUMMED, 4) for letter, end in zip(reversed(letters), ends) if letter in summed
        ]
        parts += [_text(name, left, 15, anchor="start"), _text(label, left, bottom + 16, anchor="start")]
        left, low = left + room + GAP, max(low, bottom + 22)
    if summed:
        parts.append(_text(f"{', '.join(sorted(summed))}: summed over", 8, low + 12, SUMMED, "start"))
    return _figure(what, left - GAP + 8, low + 20 * bool(summed), parts)


def cells(what, lines, least=3) -> str:
    """A figure of lines (label, cells): a cell is (text, fill), where fill is a colour's number and an opacity, () of
    an empty box, and None of text without a box. Boxes have room for `least` letters at least.

    >>> cells("f", [("x", [("1", ()), ("2", (0, 0.3))]), ("", [("top", None)])]).count("<rect")
    2
    """
    left = LETTER * max(len(label) for label, _ in lines) + 8
    wide = LETTER * max(least, *(len(text) for _, line in lines for text, fill in line if fill is not None)) + 6
    parts, widest = [], max(len(line) for _, line in lines)
    for i, (label, line) in enumerate(lines):
        y = 4 + (LINE + 2) * i
        parts.append(_text(label, 0, y + 15, anchor="start"))
        for j, (text, fill) in enumerate(line):
            x = left + wide * j
            if fill is not None:
                colour = f'fill="{COLOURS[fill[0]]}" fill-opacity="{fill[1]:.2f}"' if fill else 'fill="none"'
                parts.append(f'<rect x="{x:.0f}" y="{y}" width="{wide:.0f}" height="{LINE}" {colour} '
                             'stroke="currentColor" stroke-opacity=".5"/>')  # fmt: skip
                parts.append(_code(text, x + wide / 2, y + 15))
            else:
                parts.append(_text(text, x + 2, y + 15, anchor="start"))
    return _figure(what, left + wide * widest + 4, 8 + (LINE + 2) * len(lines), parts)


def flow(what, lines) -> str:
    """A figure of steps: "[x] -> f -> [out]" is a line of boxes, data in brackets and filled, with arrows between,
    which point back in "[grad of x] <- pull <- [grad]"; a line without an arrow is words.

    >>> flow("f", ["f of x", "[x] -> f -> [out]"]).count("<rect")
    3
    """
    parts, y, widest = [], 4.0, 0.0
    for line in lines:
        x = 4.0
        boxes = re.split(r" (->|<-) ", line)
        for i, text in enumerate(boxes):
            if len(boxes) == 1:
                parts.append(_text(text, x, y + 15, anchor="start"))
                x += 7 * len(text)
            elif i % 2:
                parts.append(_text("→" if text == "->" else "←", x + 9, y + 17))
                x += 18
            else:
                data = re.findall(r"\[([^]]+)\]", text) if re.fullmatch(r"(\[[^]]+\] ?)+", text) else []
                for each in data or [text]:
                    wide = LETTER * len(each) + 12
                    fill = f'fill="{COLOURS[0]}" fill-opacity=".25"' if data else 'fill="none" rx="8"'
                    parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="24" {fill} '
                                 'stroke="currentColor" stroke-opacity=".6"/>')  # fmt: skip
                    parts.append(_code(each, x + wide / 2, y + 16))
                    x += wide + 4
                x -= 4
        y, widest = y + (24 if len(boxes) == 1 else 34), max(widest, x)
    return _figure(what, widest + 4, y, parts)


def _line(x, y, right, low, colour="currentColor", width=1) -> str:
    look = f'stroke="{colour}" stroke-width="{width}"' if width > 1 else f'stroke="{colour}" stroke-opacity=".4"'
    return f'<line x1="{x:g}" y1="{y:g}" x2="{right:g}" y2="{low:g}" {look}/>'


def _text(text, x, y, colour="currentColor", anchor="middle", more="") -> str:
    if not text:
        return ""
    size = f'font-size="12" text-anchor="{anchor}"{more}'
    return f'<text x="{x:.0f}" y="{y:.0f}" {size} fill="{colour}">{html.escape(text)}</text>'


def _code(text, x, y) -> str:
    return _text(text, x, y, more=' font-family="monospace"')


def _figure(what, width, height, parts) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" style="max-width:100%"'
    head = f'<svg {size} role="img" aria-label="{html.escape(what)}">'
    return f"<figure>{head}{''.join(parts)}</svg></figure>"
