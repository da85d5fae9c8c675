"""Every number that the CPU's code states in capitals, listed: a new one is to be seen, and to earn its place."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "nbkernels" / "cpu"

# What decides between two ways to the same bits, or how large the pieces are: its best value may be another one on
# another machine.
STEERING = {
    "elementwise/transposed_loads.py": "FEW",
    "elementwise/gates.py": "PARALLEL FUNCTION_PARALLEL COSTS_MORE MANY CHUNK CROWDED STREAMED TURNED TALL BROAD SOON",
    "elementwise/lines.py": "LIGHT NARROW AHEAD",
    "elementwise/strided_loads.py": "SHORT",
    "elementwise/schedule.py": "FEW",
    "gemm/first_products.py": "MOST",
    "gemm/blocking.py": "PANEL",
    "gemm/context.py": "NEAR_L2 CROSSING PACKING",
    "gemm/cost.py": "VAST",
    "gemm/deep.py": "ROWS BROAD TURN LOW STEPS LINED PASSES",
    "gemm/even.py": "ROWS EACH NEAR",
    "gemm/call.py": "OVERHEAD",
    "gemm/little.py": "OUTPUTS LITTLE",
    "gemm/microkernel.py": "APART UNROLL NARROW STREAMS",
    "gemm/pack.py": "ROWS",
    "gemm/paths.py":
        "ALONE LITTLE STORED AWAKE BRIEF PARALLEL SERIAL PANEL DEEPEST SHORT_ROWS "
        "IN_PLACE NARROW_IN_PLACE MIRRORED MIRRORED_STEPS",
    "gemm/short.py": "STEPS BROAD EACH",
    "gemm/syrk.py": "LINE",
    "gemm/tiny.py": "HEIGHT UNROLL STEPS",
    "gemm/stacks.py": "LONE MET THIN_ROWS THIN_STEPS OVERHEAD",
    "gemm/stacks_float.py": "FAR CHUNK SHARES FEW_STEPS BROAD TURNED",
    "gemv/axpyf.py": "STEPS TOGETHER HELD",
    "gemv/chains.py": "ROWS HELD WIDE LOW AT_ONCE",
    "gemv/dot.py": "EACH",
    "gemv/dotxf.py": "ROWS NEAR PART SHORT PAIR LONG SKEW",
    "gemv/jobs.py": "FAR SHARED ROWS_SHARED PIECE RUN",
    "numpy_loops/elementwise.py": "PIECE",
    "numpy_loops/products.py": "ROW READ HALF MOST PRODUCT",
    "quantized/kernel.py": "COLUMNS AHEAD",
    "quantized/linear.py": "MOST",
    "reduce/first_folds.py": "MOST",
    "reduce/loops.py": "FUSED FEW",
    "reduce/plan.py": "PARALLEL STAGE SHARE WIDE",
    "reduce/row_blocks.py": "TALL SHARE ENOUGH LONG SLIM",
    "reduce/scan.py": "BESIDE",
    "reduce/scan_loop.py": "ABREAST",
    "reduce/any_all.py": "RUN",
    "runtime/threads.py": "PATIENCE",
}  # fmt: skip

# The order of summation, codes, sizes of rooms and of records.
FIXED = {
    "elementwise/elementwise.py": "NO_SCALARS",
    "elementwise/entry.py": "WAITING NOTED",
    "elementwise/fast.py": "NUMBERS ONE REAL",
    "elementwise/loop_nest.py": "BUFFERS ROOM",
    "elementwise/plan_cache.py": "SLOTS MOST ROOM LARGE_ROOM ADDRESSES FACTORS",
    "elementwise/planner.py": "OPERANDS MOST ROW CELL ORDER",
    "elementwise/schedule.py": "_LOOP",
    "gemm/first_products.py": "ROOMS",
    "gemm/block.py": "ROOM SQUARE",
    "gemm/blocking.py": "SEGMENT WAY FEW_REGISTERS",
    "gemm/call.py": "FACTORS F32 F64 STRICT HELD SHARED NEW ASKED",
    "gemm/cost.py": "NEVER",
    "gemm/deep.py": "IN_PLACE PACKED BY_ROWS FACTORS",
    "gemm/entry.py": "SERIALLY TABLE WHOLE",
    "gemm/epilogue.py": "MOST LOOP COUNT OPERANDS",
    "gemm/gemm.py": "ONE UNIT",
    "gemm/general_entry.py": "MATRICES CHOSEN SHAPE",
    "gemm/kernels.py": "PACKS TINY STACKS",
    "gemm/kinds.py": "SHALLOW",
    "gemm/matrix_unit.py": "WORD SIDE LEFT RIGHT",
    "gemm/packed.py": "LAUNCH",
    "gemm/store.py": "PARTIAL PLAIN REGISTERS MEMORY",
    "gemm/tiny.py": "AHEAD",
    "gemm/stacks_float.py": "CHAINS COPY PANELS",
    "gemv/chains.py": "CHAINS MANY WAITING",
    "gemv/dotxf.py": "PLACES BEHIND",
    "gemv/jobs.py": "BY_ROWS BY_COLUMNS BY_SEGMENTS HERE KEPT",
    "gemv/mv.py": "KEPT APART BLOCK",
    "gemv/other_dtypes.py": "BLOCK",
    "gemv/vectors.py": "WAYS",
    "numpy_loops/elementwise.py": "SINKING RESTING MINUS_INFINITY KEPT SIGNATURE",
    "numpy_loops/products.py": "ALWAYS",
    "quantized/kernel.py": "PMADDUBSW",
    "quantized/rows.py": "LEAST ROUND INFINITY",
    "reduce/row_vectors.py": "END NOTHING",
    "reduce/extreme.py": "INFINITY",
    "reduce/fold_loop.py": "BLOCK LANES DEALT GROUP",
    "reduce/loops.py": "GATHER SMALL",
    "reduce/reduce.py": "NOWHERE",
    "reduce/scan.py": "NOWHERE",
    "reduce/sums.py": "DIMENSION",
    "runtime/machine.py": "LEVELS",
    "runtime/status.py": "LACKING WANTED",
    "runtime/threads.py": "LINE",
    "runtime/workspace.py": "KEPT",
}  # fmt: skip


def numbers(tree):
    """Names in capitals that a module gives something with a literal number in it, but for a range of codes or a word
    of a record."""
    for node in (node for node in tree.body if isinstance(node, ast.Assign)):
        parts = list(ast.walk(node.value))
        literal = any(isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in parts)
        codes = any(isinstance(part, ast.Call) and getattr(part.func, "id", "") == "range" for part in parts)
        if literal and not codes and not any(isinstance(part, ast.Subscript) for part in parts):
            targets = [each for target in node.targets for each in getattr(target, "elts", [target])]
            yield from (each.id for each in targets if getattr(each, "id", "").strip("_").isupper())


def test_numbers_are_listed():
    found = {}
    for path in ROOT.rglob("*.py"):
        if names := set(numbers(ast.parse(path.read_text(encoding="utf-8")))):
            found[path.relative_to(ROOT).as_posix()] = names
    listed = {}
    for each in (STEERING, FIXED):
        for file, names in each.items():
            assert not listed.get(file, set()) & set(names.split())
            listed.setdefault(file, set()).update(names.split())
    assert found == listed


def test_a_number_is_found():
    tree = ast.parse("A, B = 3, 1 << 4\nC = A\nD, E = range(2)\nF = 8 * WORDS['x']\nlower = 5\n_G = min(A, 7)")
    assert list(numbers(tree)) == ["A", "B", "_G"]


def test_there_are_not_more():
    """This bound and the next are lowered as the numbers fall, and never raised. 15 came here with the emitters of
    element-wise loops and folds, which jit had."""
    assert sum(len(names.split()) for names in STEERING.values()) <= 119  # 60 are wanted


def test_there_are_not_more_lines():
    """Of cpu and jit together; 15,000 are wanted."""
    files = [path for room in (ROOT, ROOT.parent / "jit") for path in room.rglob("*.py")]
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in files) <= 20_551
