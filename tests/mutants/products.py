"""Faults of the CUDA product engine: its plans, and kernels that the interpreter runs."""

from .run import Mutant

TESTS = "tests/on_cuda/test_product_engine.py"
COPIES, PARTS, TILES = (f"{TESTS} -k {name}" for name in ("copies", "parts", "schedule"))
NOTHING, SMALL = f"{TESTS} -k nothing_is_read", f"{TESTS} -k 'every_config and 32x32x16 and float32'"
SEGMENTS, BATCHES = f"{TESTS} -k 'test_segments and float32'", f"{TESTS} -k 'batches and 16x16x16'"
COMPLEX = f"{TESTS} -k 'every_config and complex64 and 32x32x16'"
UNITS, ENDS = "tests/on_cuda/test_block_units.py", "tests/on_cuda/test_epilogues.py"
OWN = f"{ENDS} -k 'own_rows"
ZERO, DOUBLE = f"{TESTS} -k underflow", f"{TESTS} -k 'every_config and float64 and D 32x32x16'"

PRODUCTS = [
    ("layout.py", "i // per * rows)", "i // per * rows + 1)", COPIES),
    ("layout.py", "i % per * threads * vector", "i % per * threads", COPIES),
    ("layout.py", "(self.depth - 1) * self.step + 1", "(self.depth - 1) * self.step", COPIES),
    ("layout.py", "if down * across == config.warps and", "if", PARTS),
    ("layout.py", "mine.lm * tall, mine.tn", "tall, mine.tn", PARTS),
    ("schedule.py", "U32(unit % U32(segments))", "U32(0)", TILES),
    ("schedule.py", "U32(inside // height)", "U32(inside // U32(RASTER))", TILES),
    ("schedule.py", "I64(item) * I64(tiles) + I64(tile)", "I64(tile)", TILES),
    ("config.py", "config.stages < 2,", "config.stages < 1,", f"{TESTS} -k refused"),
    ("config.py", 'config.tier == "D" and cc < (9, 0)', 'config.tier == "D" and cc < (8, 0)', f"{TESTS} -k refused"),
    ("choose.py", "each.tiles(m, n) * items <= multiprocessors", "True", f"{TESTS} -k every_device"),
    ("matrix.py", "if k else (0, 0)", "if True else (0, 0)", NOTHING),
    ("mainloop.py", "            depth = I32(0)\n", "            depth = I32(BK)\n", NOTHING),
    ("epilogue.py", "if reads_x:", "if True:", NOTHING),
    ("copy.py", 'builder.icmp_signed("<", ir.Constant(ptx.I32, across), left[1])',
     'builder.icmp_signed("<=", ir.Constant(ptx.I32, across), left[1])', SMALL),
    ("copy.py", "ptx.clamp(builder, inside, 0, vector)", "ptx.clamp(builder, inside, 0, vector + 1)", SMALL),
    ("mainloop.py", "flow[-2 * ahead :]", "flow[-2 * ahead : -1]", SMALL),
    ("mainloop.py", "ptx.waiting(STAGES - 2)", "ptx.waiting(STAGES - 1)", SMALL),
    ("mainloop.py", "            sync()\n            here_a", "            here_a", SMALL),
    ("mainloop.py", "or tail == 0 else tail\n            read =", "or True else tail\n            read =", SMALL),
    ("mainloop.py", "written != U32(LAST) else", "written != U32(0) else", SMALL),
    ("epilogue.py", "if r < m and q < n:", "if r <= m and q < n:", SMALL),
    ("epilogue.py", "group // INNER * OUTER + group % INNER", "group", SMALL),
    ("gemm.py", "m, n, kind, a, b = n, m, kind.swapped()", "m, n, kind, a, b = n, m, kind", f"{TESTS} -k NNT"),
    ("kernel.py", "if ROLE == \"long\" and s > 0:", "if ROLE == \"long\" and s > 1:", SEGMENTS),
    ("kernel.py", "for _ in range(1, segments):", "for _ in range(2, segments):", SEGMENTS),
    ("kernel.py", "min(k - p, SEGMENT))", "min(k - p, SEGMENT - 1))", SEGMENTS),
    ("kernel.py", "(tile * segments + segment if APART else tile)", "tile", SEGMENTS),
    ("kernel.py", "(b[0], b[2], b[1], item * b[3]", "(b[0], b[2], b[1], b[3]", BATCHES),
    ("kernel.py", "if TEAMS > 1 and item >= items:", "if TEAMS > 1 and item > items:", BATCHES),
    ("atom.py", "if kind.turned:", "if not kind.turned:", COMPLEX),
    ("atom.py", "(y, -0.0))", "(y, 0.0))", ZERO),
    ("atom.py", "at, count = (i * across + j) * 4 + 2 * half", "at, count = (i * across + j) * 4 + half", DOUBLE),
    ("epilogue.py", "item * before[3] + r", "r", f"{OWN} and D'"),
    ("epilogue.py", "line, e, ends, r, q + e)", "line, e, ends, r, q)", f"{OWN} and D'"),
    ("wgmma.py", "item * before[3] + r", "r", f"{OWN} and W'"),
    ("wgmma.py", "e = min(start + i, count - 1)", "e = start + i", f"{OWN} and W'"),
    ("wgmma.py", "row + first + e * down, column", "row + first + e, column", f"{OWN} and columns'"),
    ("end.py", "each.transposed for each", "each for each", f"{ENDS} -k 'functions_end and int64 and before and F'"),
    ("gemm.py", "ending.end.out == (kind.out, kind.out)", "True", f"{ENDS} -k 'functions_end and scaled-float64'"),
    ("../kernels/chain.py", 'f"item * {at}[3] + r', 'f"r', f"{OWN} and D'"),
    ("../kernels/chain.py", "int(end.before), 0", "0, 0", f"{OWN} and D'"),
    ("collective.py", "16 * i + j % 4 // 2 * 8", "8 * i + j % 4 // 2 * 8", f"{UNITS} -k places"),
    ("collective.py", "WN + 2 * pair", "WN + pair", f"{UNITS} -k places"),
    ("collective.py", "(b[0], b[2], b[1], I64(0)), n", "(b[0], b[1], b[2], I64(0)), n", f"{UNITS} -k results"),
    ("collective.py", "mainloop(made, True)", "mainloop(made)", f"{UNITS} -k results"),
    ("copy.py", '"" if slice_.access.generic else', '".global" if slice_.access.generic else', f"{UNITS} -k example"),
    ("../block.py", "cuda.syncthreads()\n        left", "left", f"{UNITS} -k example"),
    ("../epilogue.py", "[apart([out], x)", "[x", f"{ENDS} -k overlap"),
    ("../epilogue.py", "self.before is None or not any", "True or not any", f"{ENDS} -k overlap"),
]  # fmt: skip

PRODUCTS = [Mutant(f"nbkernels/cuda/product/{file}", *rest) for file, *rest in PRODUCTS]
