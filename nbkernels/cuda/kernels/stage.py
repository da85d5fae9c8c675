"""Copies from global to shared memory: a block's slice of mat1 or mat2, through any strides, edges guarded.

A line is a row of mat1 or a column of mat2; depth is k. The shared slice is [depth][line] for both, `pitch` from depth
to depth, so that a thread reads its lines as whole 16-byte pieces.
"""

import functools

from numba import types

from .functions import inlined

# An index into shared memory is unsigned: a signed one may count from the end, and while that is to be found out, the
# compiler does not see that neighbours are neighbours (8x8 per thread: 4 loads of 16 bytes a step of k became 16 of 4).
AT = types.uint64
SHORT = types.int32


@functools.cache
def stager(lines, depth, threads, pitch, planes, load):
    """place, fetch and store of a slice of `lines` x `depth`; each thread moves lines * depth / threads elements.

    load(held, q, x, place, inside) brings an element of `planes` words (chain.py).
    """
    LINES, DEPTH, THREADS, PITCH, PLANES = lines, depth, threads, pitch, planes
    EACH = lines * depth // threads

    @inlined
    def place(thread, line_stride, depth_stride):
        """(line, depth, line step, depth step): neighbouring threads walk the direction that is closer in memory."""
        if abs(depth_stride) < abs(line_stride):
            return SHORT(thread // DEPTH), SHORT(thread % DEPTH), SHORT(THREADS // DEPTH), SHORT(0)
        return SHORT(thread % LINES), SHORT(thread // LINES), SHORT(0), SHORT(THREADS // LINES)

    @inlined
    def fetch(held, x, line_stride, depth_stride, at, line0, n_lines, depth0, n_depth):
        """held = x[line0:line0+LINES, depth0:depth0+DEPTH], padded beyond the edges.

        Running sums, not products of q: hoisted out of the loop over k, those would fill 40 registers.
        """
        line, depth, line_step, depth_step = at
        lines_left, depth_left = SHORT(min(n_lines - line0, LINES)), SHORT(min(n_depth - depth0, DEPTH))
        place = (line0 + line) * line_stride + (depth0 + depth) * depth_stride
        step = line_step * line_stride + depth_step * depth_stride
        for q in range(EACH):
            load(held, q, x, place, SHORT(line) < lines_left and SHORT(depth) < depth_left)
            place += step
            line += line_step
            depth += depth_step

    @inlined
    def store(slices, half, held, at):
        """slices[half] = held"""
        line, depth, line_step, depth_step = at
        place = half * (DEPTH * PITCH) + depth * PITCH + line
        for q in range(EACH):
            for e in range(PLANES):
                slices[AT(place * PLANES + e)] = held[q * PLANES + e]
            place += depth_step * PITCH + line_step

    return place, fetch, store
