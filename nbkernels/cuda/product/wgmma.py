"""Products by wgmma on compute capability 9.0: a warp brings tiles by TMA, warpgroups multiply and store them.

A block makes one tile of C after another. Its last warp fills a ring of stages in shared memory, each 128 bytes deep
along k, and waits for a stage to be empty; the warpgroups, 64 rows of the tile each, wait for it to be full. A tile's
store goes on while the next tile's products run.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ...jit.ir.kind import BYTES
from ..kernels.chain import ended, ending, matrix, parameters, word
from ..kernels.elements import computed, writing
from ..kernels.functions import inlined
from . import hopper as ptx
from .config import SEGMENT
from .ptx import address
from .tensormap import CHUNK, LINE, ROWS, SLOTS, WARPGROUP, Form

U32 = types.uint32
DTYPES = {"bfloat16": "bf16", "float16": "f16", "int8": "s8", "uint8": "u8", "float32": "tf32"}


@functools.cache
def loader(lines: int, along_k: bool):
    """load(at, tensormap, full, p, line, item): lines x 128 bytes of an operand into shared memory at `at`."""
    ALONG_K, CHUNKS = along_k, 1 if along_k else -(-lines // ROWS)

    @inlined
    def load(at, tensormap, full, p, line, item):
        for chunk in range(CHUNKS):
            x, y = (p, line) if ALONG_K else (line + chunk * ROWS, p)
            ptx.load_box(at + chunk * CHUNK, tensormap, full, x, y, item)

    return load


def descriptor(along_k: bool) -> int:
    """The constant half of a matrix descriptor: 128-byte swizzle, 8 rows of 128 bytes after 1024, chunks of 64 rows."""
    return 1 << 62 | (1024 >> 4) << 32 | (1 if along_k else CHUNK >> 4) << 16


def staging(form: Form):
    """stage(sums, piece, at, alpha): alpha times a piece of the sums, converted, into a slot, at the thread's place.

    By rows, a warp's piece is 16 rows of 128 bytes; by columns, a warpgroup's is `piece` columns of 64 numbers. Sums
    stand in blocks of 8 columns, four of a thread: two neighbours in row lane / 4, and two 8 rows below.
    """
    out, count = form.kind.out, form.piece // 2
    narrow = {"bfloat16": "bf16x2", "float16": "f16x2"}.get(out) if form.c != "any" else None
    letter, mul = ("r", "mul.lo.s32") if form.kind.chain == "int32" else ("f", "mul.f32")
    at, alpha = f"${count}", f"${count + 1}"
    lines = ["{ .reg .b32 z0, z1, z2, z3, z4, z5, z6, z7, at;"]
    for x in range(0, count, 8):  # alpha comes in here, because the compiler would keep all products ahead of the loop
        lines += [f"{mul} z{i}, ${x + i}, {alpha};" for i in range(min(8, count - x))]
        if narrow:
            lines += [f"cvt.rn.{narrow}.f32 z{i}, z{2 * i + 1}, z{2 * i};" for i in range(4)]
            lines += [f"add.s32 at, {at}, {x * 256};" if form.c == "columns" else f"xor.b32 at, {at}, {x << 2};"]
            trans = ".trans" if form.c == "columns" else ""
            lines += [f"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [at], {{z0, z1, z2, z3}};"]
        else:
            for z in (0, 4):
                lines += [f"xor.b32 at, {at}, {(x + z) // 4 << 5};", f"st.shared.v2.b32 [at], {{z{z}, z{z + 1}}};"]
                lines += [f"st.shared.v2.b32 [at+1024], {{z{z + 2}, z{z + 3}}};"]
    return ptx.piecewise(" ".join([*lines, "}"]), letter, count, form.config.bn // form.piece)


@functools.cache
def placer(form: Form):
    """at(thread, slots): (the slots of a thread's team, its place in a piece); a team is a warp, or a warpgroup."""
    COLUMNS, NARROW = form.c == "columns", form.c == "rows" and BYTES[form.kind.out] == 2
    TEAM, BYTES_ = (WARPGROUP, SLOTS * CHUNK) if COLUMNS else (32, SLOTS * CHUNK // 4)

    @inlined
    def at(thread, slots):
        lane, base, rest = thread % 32, slots + thread // TEAM * BYTES_, 0
        if COLUMNS:
            row, piece = lane // 16 * 8 + lane % 8, thread // 32 % 4 * 2 + lane // 8 % 2
        elif NARROW:
            row, piece = lane % 16, lane // 16
        else:
            row, piece, rest = lane // 4, lane % 4 // 2, lane % 2 * 8
        return base, base + row * LINE + ((piece ^ (row % 8)) << 4) + rest

    return at


@functools.cache
def storer(form: Form):
    """store(sums, slots, thread, c_map, row, column, item, alpha): the warpgroup's 64 rows of C from `row` on, by TMA.

    Pieces go through the slots in turn; a slot is written again when its last store has read it.
    """
    COLUMNS, PIECE, PIECES = form.c == "columns", form.piece, form.config.bn // form.piece
    SLOT, TEAM = (CHUNK, WARPGROUP) if COLUMNS else (CHUNK // 4, 32)
    read, all_read, stage, at = ptx.store_read(SLOTS - 1), ptx.store_read(0), staging(form), placer(form)
    UNEVEN = PIECES % SLOTS != 0  # the last slot of a tile is the first one of the next

    @inlined
    def meet(thread):
        if COLUMNS:
            ptx.threads_sync(1 + thread // WARPGROUP, WARPGROUP)
        else:
            ptx.warp_sync()

    @inlined
    def store(sums, slots, thread, c_map, row, column, item, alpha):
        base, place = at(thread, slots)
        if not COLUMNS:
            row += thread // 32 % 4 * 16
        for piece in range(PIECES):
            slot = piece % SLOTS * SLOT
            if thread % TEAM == 0:
                if UNEVEN and piece == 0:
                    all_read()
                else:
                    read()
            meet(thread)
            stage(sums, piece, place + slot, alpha)
            ptx.publish()
            meet(thread)
            if thread % TEAM == 0:
                x, y = (row, column + piece * PIECE) if COLUMNS else (column + piece * PIECE, row)
                ptx.store_box(c_map, base + slot, x, y, item)
                ptx.store_commit()

    return store


@functools.cache
def writer(form: Form):
    """write(sums, slots, thread, c, x, row, column, sizes, beta, alpha, ends): alpha * sums + beta * X, and the form's
    function of that, the 64 rows of C from `row` on, element by element: a warp walks along rows, or along columns
    where those are closer. sizes: m, n, whether X is read.

    A lane takes BATCH elements at a time, so that their loads are under way together; what it reads beyond its last
    element of X, and of what the function reads, is that one again.
    """
    kind, PIECE, PIECES, BATCH = form.kind, form.piece, form.config.bn // form.piece, 4
    (_, _, blend, write), stage, at, function = ending(kind), staging(form), placer(form), ended(form.end, kind)
    ENDED, BEFORE, WORD = form.end is not None, form.end is not None and form.end.before, word(kind)
    out, result = form.end.out if form.end else (kind.out, kind.word)
    RESULT, put, read = types.uint8 if result == "bool" else computed(result), writing(out), ptx.shared_word(WORD)

    @inlined
    def bfloat16(c, place, value):  # by an instruction, where cards before compute capability 8.0 round by a dozen
        ptx.store_bfloat16(address(c) + place * 2, types.float32(value))

    if kind.out == "bfloat16":

        @inlined
        def write(line, j, factor, c, place):
            bfloat16(c, place, line[j])

    if out == "bfloat16":
        put = bfloat16

    @inlined
    def store(sums, slots, thread, c, x, row, column, sizes, beta, alpha, ends):
        line, lane, (base, place) = cuda.local.array(BATCH, WORD), thread % 32, at(thread, slots)
        results, (m, n, reads_x) = cuda.local.array(BATCH, RESULT), sizes
        row += thread // 32 % 4 * 16
        first, second, down, across = (lane % 16, lane // 16, 0, 2) if c[1] < c[2] else (0, lane, 1, 0)
        step, step_x = down * c[1] + across * c[2], down * x[1] + across * x[2]
        for piece in range(PIECES):
            stage(sums, piece, place, alpha)
            ptx.warp_sync()
            rows, columns = min(16, m - row), min(PIECE, n - column)
            count = 0
            if first < rows and second < columns:
                count = rows if down else (columns - second + 1) // 2
            to = c[3] + (row + first) * c[1] + (column + second) * c[2]
            by = x[3] + (row + first) * x[1] + (column + second) * x[2]
            for start in range(0, count, BATCH):
                for i in range(BATCH):
                    r, q = U32(first + (start + i) * down), U32(second + (start + i) * across)
                    line[i] = read(base + U32(r * LINE) + U32(U32(q >> 2 ^ r & 7) << 4) + U32(U32(q & 3) << 2))
                if reads_x:
                    for i in range(BATCH):
                        blend(line, i, beta, x[0], by + min(start + i, count - 1) * step_x)
                if ENDED:
                    for i in range(BATCH):
                        e = min(start + i, count - 1)
                        r, q = row + first + e * down, column + second + e * across
                        results[i] = function(line, i, ends, r, q)
                for i in range(BATCH):
                    if start + i < count:
                        if BEFORE:
                            before, item = ends[0][0], ends[2]
                            r, q = row + first + (start + i) * down, column + second + (start + i) * across
                            write(line, i, beta, before[0], item * before[3] + r * before[1] + q * before[2])
                        if ENDED:
                            put(c[0], to + (start + i) * step, results[i])
                        else:
                            write(line, i, beta, c[0], to + (start + i) * step)
            ptx.warp_sync()
            column += PIECE

    return store


@functools.cache
def schedule(form: Form):
    """place(index, rows, columns): (item, row, column) of the tile that is `index` in order: down a band of rows of
    tiles, then the next column. Divisions are of 32 bits, which take a fifth of those of 64."""
    RASTER = form.config.raster

    @inlined
    def place(index, rows, columns):
        item = U32(index) // U32(rows * columns)
        inside = U32(index) % U32(rows * columns)
        size = U32(RASTER * columns)
        band, inside = U32(inside // size) * RASTER, U32(inside % size)
        height = U32(min(RASTER, rows - band))
        return item, band + U32(inside % height), U32(inside // height)

    return place


@functools.cache
def unit(form: Form):
    """work(index, k): (tile, first step of k, last) of a unit of work, which is a tile, or one of its segments."""
    PART = form.role == "part"

    @inlined
    def work(index, k):
        if PART:
            segments = U32((k + SEGMENT - 1) // SEGMENT)
            begin = U32(U32(index) % segments) * SEGMENT
            return U32(U32(index) // segments), begin, min(k, begin + SEGMENT)
        return U32(index), 0, k

    return work


@functools.cache
def producer(form: Form):
    """produce(base, a_map, b_map, tiles, sizes): one thread fills the stages, tile after tile."""
    config, DEPTH, (A, B), BARRIERS = form.config, form.depth, form.stage, form.barriers
    BM, BN, STAGES = config.bm, config.bn, config.stages
    load_a, load_b = loader(BM, form.a == "k"), loader(BN, form.b == "k")
    place, work = schedule(form), unit(form)

    @inlined
    def produce(base, a_map, b_map, tiles, sizes):
        full, empty, stage, phase = base + BARRIERS, base + BARRIERS + 8 * STAGES, 0, 1
        index, step, count, rows, columns = tiles
        _, _, k, _, a_each, b_each, _ = sizes
        while index < count:
            tile, p, end = work(index, k)
            item, row, column = place(tile, rows, columns)
            row, column = row * BM, column * BN
            while p < end:
                ptx.barrier_wait(empty + 8 * stage, phase)
                ptx.barrier_expect(full + 8 * stage, A + B)
                at = base + stage * (A + B)
                load_a(at, a_map, full + 8 * stage, p, row, item * a_each)
                load_b(at + A, b_map, full + 8 * stage, p, column, item * b_each)
                p += DEPTH
                stage += 1
                if stage == STAGES:
                    stage, phase = 0, phase ^ 1
            index += step

    return produce


@functools.cache
def multiplier(form: Form):
    """multiply(sums, base, thread, p, k, totals, ring): sums = A[:, p:k] B[p:k] of a warpgroup's rows, from stages as
    they fill, one of which is multiplied while the next is waited for.

    Segments of k before the last are added up at `totals`. The ring, (stage, phase), goes on to the next tile.
    """
    config, DEPTH, (A, B), BARRIERS = form.config, form.depth, form.stage, form.barriers
    STAGES, LONG = config.stages, form.role == "long"
    STAGE, A_WORD, B_WORD = A + B, descriptor(form.a == "k"), descriptor(form.b == "k")
    step_a, step_b = (2 if side == "k" else 128 for side in (form.a, form.b))
    dtypes, steps = (DTYPES[form.kind.a], DTYPES[form.kind.b]), tuple((i * step_a, i * step_b) for i in range(4))
    step = ptx.multiplier(config.bn, dtypes, steps, form.a == "l", form.b == "l")
    before, done = ptx.multiply_done(1), ptx.multiply_done(0)
    put, _, add = waiting_sums(form)

    @inlined
    def release(empty, thread):
        """A warpgroup has read a stage."""
        if thread % WARPGROUP == 0:
            ptx.barrier_arrive(empty)

    @inlined
    def multiply(sums, base, thread, p, k, totals, ring):
        full, empty, (stage, phase), last = base + BARRIERS, base + BARRIERS + 8 * STAGES, ring, 0
        a, b = A_WORD | ((base + thread // WARPGROUP * CHUNK) >> 4), B_WORD | ((base + A) >> 4)
        while p < k:
            begin, end = p, min(k, p + SEGMENT) if LONG else k
            while p < end:
                ptx.barrier_wait(full + 8 * stage, phase)
                step(sums, a + stage * (STAGE >> 4), b + stage * (STAGE >> 4), p - begin)
                before()
                if p > begin:
                    release(empty + 8 * last, thread)
                last = stage
                p += DEPTH
                stage += 1
                if stage == STAGES:
                    stage, phase = 0, phase ^ 1
            done()
            release(empty + 8 * last, thread)
            if LONG:
                if begin > 0:
                    add(sums, totals)
                if end < k:
                    put(sums, totals)
        return stage, phase

    return multiply


def waiting_sums(form: Form):
    """put, get and add of a thread's sums."""
    letter = "r" if form.kind.chain == "int32" else "f"
    return ptx.waiting_sums(letter, form.config.bn // 2, form.groups * WARPGROUP * 16)


def make(form: Form):
    """(body, signature) of

        gemm(a_map, b_map, c_map, sizes, c, x, beta, alpha, totals, ends)

    sizes: m, n, k, items; 0 where all items share mat1, or mat2, else 1; whether x is read. c and x, (pointer, strides
    of rows, columns and items), are for forms that store element by element. totals: words for sums that wait, as many
    as a tile has for each block of a long product, or for each segment of a tile. ends: (matrices, numbers) that the
    function at the end reads.
    """
    config, kind, WORD = form.config, form.kind, word(form.kind)
    BM, BN, STAGES = config.bm, config.bn, config.stages
    GROUPS, CONSUMERS, SUMS, ANY = form.groups, form.groups * WARPGROUP, BN // 2, form.c == "any"
    BARRIERS, SLOTS_AT = form.barriers, form.slots
    PART, SUM, LONG, TILE = *(form.role == role for role in ("part", "sum", "long")), BM * BN * 4
    produce, multiply, place, work = producer(form), multiplier(form), schedule(form), unit(form)
    put, get, add = waiting_sums(form)
    store, write = (None, writer(form)) if ANY else (storer(form), None)
    fewer, more = (ptx.keep_registers(count, more) for more, count in enumerate(form.registers))
    drained = ptx.store_read(0)

    @inlined
    def consume(base, thread, c_map, tiles, sizes, c, x, factors, totals, ends):
        sums, ring = cuda.local.array(SUMS, WORD), (0, 0)
        index, step, count, rows, columns = tiles
        (m, n, k, _, _, _, reads_x), (beta, alpha) = sizes, factors
        while index < count:
            tile, begin, end = work(index, k)
            item, row, column = place(tile, rows, columns)
            row, column = row * BM + thread // WARPGROUP * ROWS, column * BN
            if SUM:
                segments = (k + SEGMENT - 1) // SEGMENT
                get(sums, totals + index * segments * TILE)
                for segment in range(1, segments):
                    add(sums, totals + (index * segments + segment) * TILE)
            else:
                ring = multiply(sums, base, thread, begin, end, totals, ring)
            if PART:
                put(sums, totals + index * TILE)
            elif ANY:
                to, by = (c[0], c[1], c[2], item * c[3]), (x[0], x[1], x[2], item * x[3])
                by_end = ends[0], ends[1], item
                write(sums, base + SLOTS_AT, thread, to, by, row, column, (m, n, reads_x), beta, alpha[0], by_end)
            else:
                store(sums, base + SLOTS_AT, thread, c_map, row, column, item, alpha[0])
            index += step
        drained()

    def gemm(a_map, b_map, c_map, sizes, c, x, beta, alpha, totals, ends):
        base = ptx.shared_address(cuda.shared.array(0, types.uint8, alignment=1024))
        thread = cuda.threadIdx.x
        if thread == CONSUMERS:
            ptx.prefetch_map(ptx.map_address(a_map))
            ptx.prefetch_map(ptx.map_address(b_map))
        rows, columns = (sizes[0] + BM - 1) // BM, (sizes[1] + BN - 1) // BN
        count = rows * columns * sizes[3] * ((sizes[2] + SEGMENT - 1) // SEGMENT if PART else 1)
        tiles = cuda.blockIdx.x, cuda.gridDim.x, count, rows, columns
        if thread == 0:
            for stage in range(STAGES):
                ptx.barrier_init(base + BARRIERS + 8 * stage, 1)
                ptx.barrier_init(base + BARRIERS + 8 * (STAGES + stage), GROUPS)
            ptx.barrier_fence()
        cuda.syncthreads()
        if thread < CONSUMERS:
            if GROUPS > 1:
                more()
            totals += thread * 16 + (cuda.blockIdx.x * TILE if LONG else 0)
            consume(base, thread, ptx.map_address(c_map), tiles, sizes, c, x, (beta, alpha), totals, ends)
        else:
            if GROUPS > 1:
                fewer()
            if thread == CONSUMERS and not SUM:
                produce(base, ptx.map_address(a_map), ptx.map_address(b_map), tiles, sizes)

    out, factor = form.end.out[0] if form.end else kind.out, types.UniTuple(WORD, 1)
    return gemm, (*(ptx.tensor_map,) * 3, types.UniTuple(types.int64, 7), matrix(out), matrix(kind.out), factor, factor,
                  types.int64, parameters(form.end, kind))  # fmt: skip
