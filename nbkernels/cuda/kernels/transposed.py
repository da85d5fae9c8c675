"""The kernel of element-wise operations with transposed inputs.
The neighbours of these in memory lie along another loop than the output's.

A block makes a tile of SIDE x SIDE elements. Of a `turned` input it first brings the tile to shared memory, transposed
on the way, so that both sides are moved by vectors. A line of the tile is longer by an element, so that neither its
rows nor its columns meet in few banks.
"""

from numba import types

from .elementwise import compiled, loads, prepared, values
from .vectors import vectors

SOURCE = """\
def tile(tiles, rows, columns, shape, pointers, steps, numbers):
    {arrays}
    {shared}
    block, thread = types.int64(cuda.blockIdx.x), types.int64(cuda.threadIdx.x)
    column0, block = block % tiles[1] * SIDE, block // tiles[1]
    row0, block = block % tiles[0] * SIDE, block // tiles[0]
    {outer}
    tall, wide = min(rows - row0, SIDE), min(columns - column0, SIDE)
    {stage}
    cuda.syncthreads()
    for u in range(EACH):
        piece = thread + u * THREADS
        row, column = piece // (SIDE // WIDTH), piece % (SIDE // WIDTH) * WIDTH
        lefts[u] = min(wide - column, WIDTH)
        if row < tall and lefts[u] > 0:
            {loads}
            {values}
"""
STAGE = """\
for q in range({count}):
        piece = thread + q * THREADS
        line, down = piece // {across}, piece % {across} * {width}
        if line < wide:
            at = base{k} + line * steps[{k}][LAST] + down
            if down + {width} <= tall:
                load{k}_turned(turned{k}, 0, pointers[{k}], at)
                for e in range({width}):
                    tile{k}[(down + e) * (SIDE + 1) + line] = turned{k}[e]
            else:
                for e in range({width}):
                    if down + e < tall:
                        tile{k}[(down + e) * (SIDE + 1) + line] = pointers[{k}][at + e]
"""


def make(function, dtype, outs, inputs, mask, ndim: int, width: int, side: int, threads: int):
    """out[k] = function(*inputs)[k], where the mask says so, as elementwise.make; of loops of `ndim` dimensions, the
    last two of which are cut into tiles. The way of a turned input is "turned W", by vectors of W elements."""
    each = side * side // (width * threads)
    arrays, scope = prepared(function, dtype, outs, inputs, mask, width, each, threads)
    scope |= {"types": types, "SIDE": side, "LAST": ndim - 1}
    turned = {k: int(way.split()[1]) for k, (_, _, way) in enumerate(arrays) if way.startswith("turned")}
    scope |= {f"load{k}_turned": vectors(arrays[k][0], wide)[0] for k, wide in turned.items()}
    shared = [f"tile{k} = cuda.shared.array({side * (side + 1)}, T{k})" for k in turned]
    shared += [f"turned{k} = cuda.local.array({wide}, T{k})" for k, wide in turned.items()]
    outer = []
    for d in range(ndim - 3, -1, -1):
        outer += [f"i{d} = block % shape[{d}]", f"block = block // shape[{d}]"]
    for k in range(len(arrays)):
        parts = "".join(f"i{d} * steps[{k}][{d}] + " for d in range(ndim - 2))
        outer.append(f"base{k} = {parts}row0 * steps[{k}][LAST - 1] + column0 * steps[{k}][LAST]")
    stage = [STAGE.format(k=k, width=wide, across=side // wide, count=side * side // (wide * threads)).rstrip()
             for k, wide in turned.items()]  # fmt: skip
    lines = [f"at{k}[u] = base{k} + row * steps[{k}][LAST - 1] + column * steps[{k}][LAST]"
             for k in range(len(arrays))]  # fmt: skip
    for k in range(len(outs), len(arrays)):
        if k in turned:
            lines += [f"for e in range({width}):",
                      f"    x{k}[u * {width} + e] = tile{k}[row * (SIDE + 1) + min(column + e, wide - 1)]"]  # fmt: skip
        else:
            lines += loads(k, arrays[k][2], ndim, width)
    text = SOURCE.format(
        arrays="{arrays}",
        shared="\n    ".join(shared),
        outer="\n    ".join(outer),
        stage="\n    ".join(stage),
        loads="\n            ".join(lines),
        values="\n            ".join(values(outs, inputs, arrays, mask, ndim, width)),
    )
    head = types.UniTuple(types.int64, 2), types.int64, types.int64, types.UniTuple(types.int64, ndim)
    return compiled(text, "tile", head, arrays, inputs, ndim, width, each, scope)
