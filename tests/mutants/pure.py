"""Faults in shapes, strides, dtypes and checks: planned or looked up in Python, their tests run in seconds."""

from .run import Mutant

STRIDES, GUARDS = "tests/elementwise/test_strided_plan.py", "tests/runtime/test_guards.py"
DISTINCT = f"{GUARDS} -k distinct"

PLANS = [
    ("result[d] = size if size != 1 else result[d]", "result[d] = max(size, result[d])", STRIDES),
    ("0 if n == 1 else s for n, s in zip(size, strides)", "s for n, s in zip(size, strides)", STRIDES),
    ("if a != 0 and b != 0 and a != b:", "if a != b:", STRIDES),
    ("side = 1 if a > b else -1", "side = -1 if a > b else 1", STRIDES),
    ("step *= max(shape[d], 1)", "step *= shape[d]", f"{GUARDS} -k empty"),
    ("key=lambda p: shapes[p] != shape", "key=lambda p: shapes[p] == shape", STRIDES),
    ("reach += inner * (sizes[e] - 1)", "reach += inner * (sizes[e] - 2)", DISTINCT),
    ("if sizes[d] > 1 and step < reach:", "if sizes[d] > 1 and step < itemsize:", DISTINCT),
    ("if sizes[e] > 1 and (inner", "if sizes[e] > 2 and (inner", DISTINCT),
    ("base[p] += (loops[at] - 1) * loops", "base[p] += loops[at] * loops", STRIDES),
    ("loops[last + p] == size * loops[d", "loops[last + p] == loops[d", STRIDES),
    ("one = one and loops[last + p]", "one = one or loops[last + p]", STRIDES),
    ("size * (loops[to] if one else 1)", "size + (loops[to] if one else 0)", STRIDES),
    ("if not sizes or all(s == w", "if not sizes or any(s == w", STRIDES),
    ("and all(s in (0, w)", "and any(s in (0, w)", STRIDES),
    ("if size != 1:", "if size > 2:", "tests/reduce/test_sum_to.py -k coalesces"),
    ("forward(start, terms,", "forward([0], terms,", "tests/reduce/test_layouts.py"),
    ("count = join(terms, len(folded), 1)", "count = len(folded)", "tests/reduce/test_sum_to.py -k coalesces"),
    ("(first, at + start[0])", "(first, at)", "tests/reduce/test_layouts.py"),
    ("rows(shape, [broadcast_strides(shape, n, s)", "rows(shape, [s[-len(shape):]", STRIDES),
]

OP, ARRAYS, FOREIGN = (
    "tests/dispatch/test_op.py",
    "tests/dispatch/test_adapters.py",
    "tests/dispatch/test_foreign_arrays.py",
)
LAYOUT = [
    ("step *= max(size, 1)", "step *= size", f"{GUARDS} -k layouts_views_and_capsules"),
    *(
        (f"if stride < span:\n{' ' * deep}break", f"if stride < itemsize:\n{' ' * deep}break", f"{OP} -k overlap")
        for deep in (16, 12)
    ),
    (
        "high = min((reach[axis + 1] - offset) // stride, size - 1)",
        "high = min((reach[axis + 1] - offset) // stride, size - 2)",
        f"{OP} -k overlap",
    ),
    ("if size > 1)", "if size > 2)", f"{OP} -k overlap"),
    ("if outer != size * inner and 0 not in shape:", "if outer != size and 0 not in shape:", f"{ARRAYS} -k flatten"),
    (
        "sum(step for step in steps if step > 0)",
        "sum(step for step in steps if step > 1 << 4)",
        f"{GUARDS} -k layouts_views_and_capsules",
    ),
]

VIEWS = [
    (
        "return here == there and start < last and first < stop",
        "return here == there and start < first < stop",
        f"{ARRAYS} -k extents",
    ),
    (
        "step if size == want else 0 for size, want, step",
        "step for size, want, step",
        f"{GUARDS} -k layouts_views_and_capsules",
    ),
    ("fits = lead >= 0 and all(", "fits = all(", f"{ARRAYS} -k expanding"),
    ("high + s.dtype.itemsize))", "high))", f"{GUARDS} -k layouts_views_and_capsules"),
]

PROTOCOLS = [
    ("step * dtype.itemsize for step in tensor.strides", "step for step in tensor.strides", FOREIGN),
    ("bool(flags & READ_ONLY)", "False", FOREIGN),
    ("if managed.major != 1:", "if managed.major < 1:", f"{GUARDS} -k layouts_views_and_capsules"),
    ("if tensor.lanes != 1 or", "if tensor.lanes < 1 or", FOREIGN),
    ("+ (tensor.byte_offset if tensor.data else 0)", "", f"{GUARDS} -k layouts_views_and_capsules"),
    ("if not 0 <= tensor.ndim <= 64 or", "if tensor.ndim > 64 or", FOREIGN),
    ('if face.get("mask") is not None:', "if False:", FOREIGN),
]

WRITTEN = [
    ("    if flaw:\n", "    if flaw and spec.shape:\n", f"{OP} tests/product/test_dot.py -k 'out or records'"),
    ("if layout.overlaps_itself(spec.shape, spec.strides, spec.dtype.itemsize):", "if 0 in spec.strides:", OP),
]

TARGETS = [
    ("if tuple(spec.shape) != tuple(result.shape):", "if len(spec.shape) != len(result.shape):", OP),
    ("if 0 not in result.shape and row.reason", "if row.reason", OP),
]

ROWS = [
    ("neutral=(-0.0, 0), scaled=True", "neutral=(0.0, 0), scaled=True", f"{GUARDS} -k sign"),
    (
        'neutral=(-inf, 0), unlike="float16 float32 float64", benched=True',
        'neutral=(0, 0), unlike="float16 float32 float64", benched=True',
        "tests/reduce/test_folds.py -k leaves",
    ),
]

NUMBERS = [
    ("return math.inf if value > 0 else -math.inf", "return math.inf", "tests/elementwise/test_integers.py -k numbers"),
    ('how["casting"] = "unsafe"', "pass", "tests/reduce/test_folds.py -k 'wanted or into'"),
    ('if op.startswith("logical") and type(value) in (float, complex):', "if False:", f"{GUARDS} -k settled"),
    (
        "return dtype.name in DTYPES and dtype.isnative",
        "return dtype.name in DTYPES",
        "tests/calls/test_public_functions.py tests/elementwise/test_at.py",
    ),
]

FOLDS = "tests/reduce/test_folds.py"
RULES = [
    ("nbkernels/folds.py", "if len(set(axes)) < len(axes):", "if False:", f"{FOLDS} -k bad_input"),
    ("nbkernels/folds.py", "if any(isinstance(a, bool) for a in given):", "if False:", f"{FOLDS} -k bad_input"),
    ("nbkernels/folds.py", "if op not in ASSOCIATIVE and len(axes) > 1:", "if False:", f"{FOLDS} -k bad_input"),
    (
        "nbkernels/folds.py",
        "if any(shape[a] == 0 for a in axes):",
        "if 0 in shape and not axes:",
        f"{FOLDS} -k bad_input",
    ),
    (
        "nbkernels/binary.py",
        "if not info.min <= value <= info.max:",
        "if not info.min <= value <= info.max + 1:",
        "tests/elementwise/test_rules.py tests/elementwise/test_integers.py",
    ),
    (
        "nbkernels/binary.py",
        "all(map(columns_first, inputs))",
        "any(map(columns_first, inputs))",
        "tests/elementwise/test_rules.py",
    ),
    (
        "nbkernels/binary.py",
        "if casting not in CASTINGS:",
        "if not casting:",
        f"{GUARDS} -k layouts_views_and_capsules",
    ),
    (
        "nbkernels/meta.py",
        "any(size not in (1, want) for size, want in zip(sizes, shape))",
        "any(size > want for size, want in zip(sizes, shape))",
        "tests/calls/test_shape_rules.py",
    ),
    (
        "nbkernels/meta.py",
        "if lead < 0 or any(want not in (1, have)",
        "if any(want not in (1, have)",
        "tests/calls/test_shape_rules.py",
    ),
    (
        "nbkernels/products.py",
        "if first.shape != second.shape:",
        "if len(first.shape) != len(second.shape):",
        "tests/product/test_matmul_and_batches.py -k bad_input",
    ),
]

PURE = [
    *(Mutant("nbkernels/strides.py", *rest) for rest in PLANS),
    *(Mutant("dispatch/layout.py", *rest) for rest in LAYOUT),
    *(Mutant("dispatch/views.py", *rest) for rest in VIEWS),
    *(Mutant("dispatch/foreign.py", *rest) for rest in PROTOCOLS),
    *(Mutant("dispatch/run.py", *rest) for rest in TARGETS),
    *(Mutant("dispatch/operands.py", *rest) for rest in WRITTEN),
    *(Mutant("nbkernels/dtypes.py", *rest) for rest in NUMBERS),
    *(Mutant("nbkernels/operations.py", *rest) for rest in ROWS),
    *(Mutant(*rest) for rest in RULES),
]
