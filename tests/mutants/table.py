"""What is planted: a file, text that it has once, the text in its place, the tests that must then fail.

Texts are short, so that they last. Those of pure.py come first.
"""

from .products import PRODUCTS
from .pure import FOLDS, GUARDS, PURE
from .run import Mutant

WINNERS = "tests/on_cuda/test_winners.py"
HOST = [
    # -- winners of CUDA products where they do not belong
    ("cuda/tuned.py", "low <= size <= high", "low <= size", f"{WINNERS} -k slot"),
    ("cuda/tuned.py", "(m * n, a.shape[1])", "(m * n, m)", f"{WINNERS} -k slot"),
    ("cuda/tuned.py", 'not (config.tier == "W" and by_columns)', "True", f"{WINNERS} -k by_columns"),
    ("cuda/tuned.py", "if (config.tier in TENSOR) != tensor:", "if False:", f"{WINNERS} -k refuses_tiers"),
    ("cuda/tuned.py", 'name = "int8" if takes', "name = kind.a if takes", f"{WINNERS} -k any_sign"),
    ("cuda/tuned.py", 'f"{name} {mode}" if mode else name', "name", f"{WINNERS} -k every_tier_and_few"),
    ("cuda/product/gemm.py", "split=own.split and k > SEGMENT", "split=own.split", f"{WINNERS} -k split"),
    ("cuda/product/gemm.py", "if config is None and k else", "if config is None else", f"{WINNERS} -k slot"),
    ("cuda/product/config.py", "if not 1 <= config.raster <= 64:", "if False:", f"{WINNERS} -k cannot_be_used"),
    ("cuda/product/config.py", "2 * DEPTHS[dtype]", "DEPTHS[dtype]", "tests/on_cuda/test_product_engine.py -k refused"),
    ("winners.py", "type(value).__name__ == kind and", "", f"{WINNERS} -k cannot_be_used"),
    ("tuning/cuda.py", "driver.clear(self._arrays[2])", "pass", f"{WINNERS} -k none_at_all"),
    ("tuning/cuda.py", "tobytes() != self._expected", "tobytes() == 0", f"{WINNERS} -k none_at_all"),
    # -- what is lost where nobody looks: exceptions, writes after a call, places to keep things
    (
        "jit/compile/error_model.py",
        "if any(function.name == REPORT",
        "if all(function.name == REPORT",
        "tests/disk/test_cache.py -k would_see_it",
    ),
    ("jit/abi/new_arrays.py", "    _MADE.append(made)", "    pass", "tests/disk/test_cache.py -k words_that"),
    ("jit/disk/load.py", "ctypes.pythonapi.Py_IncRef(", "len(", "tests/disk/test_cache.py -k never_freed"),
    ("jit/disk/files.py", ").expanduser().absolute()", ").absolute()", "tests/disk/test_cache.py -k home_directory_by"),
    (
        "jit/disk/files.py",
        'except (OSError, RuntimeError) as error:\n        raise FileNotFoundError(f"no dir',
        'except OSError as error:\n        raise FileNotFoundError(f"no dir',
        "tests/disk/test_cache.py -k without_a_home",
    ),
    ("array.py", 'keywords.get("initial", 0) is None', "False", "tests/numpy_api/test_asarray.py -k folds_of_nothing"),
    ("pickled.py", "if _found(*place) is made:", "if False:", "tests/calls/test_pickling.py -k first_call"),
    (
        "pickled.py",
        'None if module == "__main__" else reduce',
        "reduce",
        "tests/calls/test_pickling.py -k main_program",
    ),
    (
        "autograd/saved.py",
        'value = copied(x, "K")',
        "value = x.view()",
        "tests/autograd/test_tape.py -k written_later",
    ),
    (
        "autograd/saved.py",
        "if arrays.adapter_for(x).version(x) != version:",
        "if False:",
        "tests/autograd/test_tape.py -k noticed",
    ),
    (
        "autograd/notes.py",
        "op.table.kept((key, mask), cls,",
        "op.table.kept(key, cls,",
        "tests/autograd/test_notes.py -k own_grad",
    ),
    (
        "autograd/vjp.py",
        "op.table.kept((vjp, seen),",
        "op.table.kept(vjp,",
        "tests/autograd/test_notes.py -k one_operation",
    ),
    ("autograd/tape.py", "view and may_share_memory(x, grad)", "False", "tests/autograd/test_notes.py -k share_no"),
    (
        "cpu/gemv/vectors.py",
        'if mat.dtype.kind == "c" else mv_fast',
        "if False else mv_fast",
        "tests/product/test_matmul_and_batches.py -k complex_vector",
    ),
    (
        "rounding.py",
        '("real", "imag") if work.kind == "c" else ("",)',
        '("",)',
        "tests/elementwise/test_one_operand.py -k decimals",
    ),
    (
        "rounding.py",
        "decimals > 0 and result.kind",
        "decimals > 1 and result.kind",
        "tests/elementwise/test_one_operand.py -k decimals",
    ),
    (
        "threads.py",
        "LIMITS[0] = 0 if block is None else block.n",
        "LIMITS[0] = 0",
        "tests/runtime/test_threads.py -k block_says",
    ),
    ("tensor_calls.py", "if few() < limits[1]:", "if False:", "tests/runtime/test_threads.py -k torchs_number"),
    ("jit/compile/build.py", "forks_wait(global_compiler_lock)", "pass", "tests/jit/test_shield.py -k meanwhile"),
    (
        "shield.py",
        "_importers.append(threading.get_ident())",
        "_importers.append(0)",
        "tests/calls/test_first_calls.py -k importing",
    ),
    ("jit/compile/cache.py", "_uncollected and gc.enable()", "_uncollected", "tests/jit/test_shield.py -k meanwhile"),
    ("shield.py", "Step(self._end if step.begun else self._skip).make()", "pass", "tests/jit/test_shield.py -k block"),
    ("shield.py", "(step or Step(self._end)).make()", "pass", "tests/jit/test_shield.py -k block"),
    (
        "cpu/elementwise/plan_cache.py",
        "kept = self.entering[record.ctypes.data] =",
        "kept =",
        "tests/elementwise/test_remembered_layouts.py",
    ),
    (
        "jit/compile/build.py",
        "uncollected(), default_modes():",
        "uncollected():",
        "tests/runtime/test_threads.py -k constants",
    ),
    (
        "in_numpy/inner_loops.py",
        "if slot.loop.product and not slot.replaced:",
        "if False:",
        "tests/command/test_recorded_calls.py -k in_numpy",
    ),
    (
        "calls/record.py",
        "if slot and code is slot.take.__code__:",
        "if False:",
        "tests/command/test_recorded_calls.py -k in_numpy",
    ),
    (
        "autograd/gradients.py",
        "by(grad, ops.sinh(self))",
        "by(grad, ops.sinh(getattr(self, 'value', self)))",
        "tests/autograd/test_every_dtype.py -k second",
    ),
    ("cpu/gemv/mv.py", "None if x is None else whole(x), whole(a)", "x, whole(a)", f"{GUARDS} -k records"),
    ("cpu/gemv/mv.py", "else whole(x), whole(a), whole(v)", "else whole(x), a, whole(v)", f"{GUARDS} -k records"),
    (
        "cpu/gemv/mv.py",
        "for y in (a, v, x) if y is not",
        "for y in (a, x) if y is not",
        "tests/product/test_mv.py -k overlap",
    ),
    ("cpu/gemv/mv.py", " and out.strides[0] % out.itemsize == 0", "", f"{GUARDS} -k records"),
    # -- entries that public functions call at once
    ("dispatch/op.py", "        self.direct.clear()\n", "", "tests/dispatch/test_fast_path.py -k an_entry"),
    (
        "dispatch/function.py",
        " and __made is not __tuple",
        "",
        "tests/dispatch/test_fast_path.py -k an_entry",
    ),
    ("cpu/runtime/threads.py", "_words[:] = POOL.array()", "pass", f"{GUARDS} -k fork"),
    (
        "cpu/elementwise/elementwise.py",
        "if layouts[0] == layouts[1]:",
        "if layouts[0][:2] == layouts[1][:2]:",
        f"{GUARDS} -k set_apart",
    ),
    (
        "cpu/elementwise/elementwise.py",
        "np.any(where & (exponents < 0))",
        "np.any(exponents < 0)",
        "tests/elementwise/test_integers.py tests/elementwise/test_two_operands.py -k 'pow or power or masked'",
    ),
    ("cpu/elementwise/elementwise.py", "return x.copy() if overlap else x", "return x", f"{GUARDS} -k set_apart"),
    (
        "cpu/gemm/gemm.py",
        "overlap = clash(out, a) or clash(out, b) or",
        "overlap = clash(out, a) or",
        "tests/product/test_gemm.py tests/product/test_matmul_and_batches.py -k overlap",
    ),
    (
        "cpu/gemm/gemm.py",
        "return p.shape == q.shape and p.strides == q.strides and",
        "return p.shape == q.shape and",
        "tests/product/test_gemm.py -k overlap",
    ),
    (
        "cpu/gemm/gemm.py",
        "if a.shape[1] == 0 or alpha == 0:",
        "if a.shape[1] == 0:",
        "tests/product/test_gemm.py -k never",
    ),
    (
        "cpu/gemm/gemm.py",
        "    if beta == 0:\n        x = None\n",
        "",
        "tests/product/test_gemm.py tests/product/test_dtypes.py -k never",
    ),
    (
        "cpu/gemm/gemm.py",
        "return operand is not None and any(",
        "return operand is not None and all(",
        f"{GUARDS} -k rows_of_packed",
    ),
    (
        "cpu/gemm/gemm.py",
        "if overlap or any(stride % out.itemsize for stride in out.strides):",
        "if overlap:",
        "tests/product/test_gemm.py -k records",
    ),
    (
        "cpu/reduce/folds.py",
        "initial = identity(op, work) if initial",
        "initial = neutral(op, work) if initial",
        f"{GUARDS} -k masks",
    ),
    (
        "cpu/reduce/folds.py",
        "(*(slice(None),) * axis[0], slice(not started, None))",
        "(*(slice(None),) * axis[0], slice(None))",
        f"{FOLDS} -k negative",
    ),
    (
        "cpu/gemm/blocking.py",
        "planes * (tiles.mr * vectors + vectors + 1) > registers",
        "planes * (tiles.mr * vectors) > registers",
        f"{GUARDS} -k tiles",
    ),
    ("cpu/gemm/blocking.py", "tiles.kc > SEGMENT", "tiles.kc > 2 * SEGMENT", f"{GUARDS} -k tiles"),
    ("cpu/gemm/blocking.py", "tiles.nb % max(tiles.nr, 1) != 0", "False", f"{GUARDS} -k tiles"),
]

OTHERS = [
    (
        "dispatch/devices.py",
        "if x.is_inference() and not",
        "if False and not",
        "tests/calls/test_tensors_and_subclasses.py -k inference",
    ),
    ("nbkernels/fusion.py", "*map(told, held)", "len(held)", f"{GUARDS} -k close_over"),
    (
        "nbkernels/fusion.py",
        'if not np.can_cast(dtype, out.spec.dtype, "same_kind"):',
        "if False:",
        "tests/elementwise/test_fusion.py -k errors",
    ),
    (
        "nbkernels/autograd/gradients.py",
        "return grad if factor == 1 else multiply(grad, factor.conjugate())",
        "return grad if factor == 1 else multiply(grad, factor)",
        f"{GUARDS} -k conjugated",
    ),
    (
        "nbkernels/autograd/tape.py",
        "ops.add(grads[number], part) if number in grads else part",
        "part",
        "tests/autograd/test_tape.py",
    ),
    ("nbkernels/store.py", 'and "candidate" in entry}', "}", "tests/tuning/test_store_and_races.py"),
    ("nbkernels/store.py", "os.unlink(temporary)", "pass", "tests/tuning/test_store_and_races.py"),
    ("dispatch/operands.py", "    if flaw:", "    if False:", "tests/elementwise/test_at.py -k bad"),
    (
        "dispatch/operands.py",
        "if layout.overlaps_itself(spec.shape, spec.strides, spec.dtype.itemsize):",
        "if False:",
        "tests/elementwise/test_at.py -k bad",
    ),
]

# In what is compiled: each costs the compilation of what its tests use.
PATHS = "tests/product/test_every_path.py"
VECTORS = "tests/product/test_gemv.py"
COMPILED = [
    ("cpu/gemv/jobs.py", "else segments * m * size", "else segments * m * size - 256", f"{GUARDS} -k large_vectors"),
    ("cpu/gemv/dot.py", "allocate(parts *", "allocate((parts - 32) *", f"{GUARDS} -k large_vectors"),
    (
        "cpu/elementwise/entry.py",
        "head.scaled == 0 or word(alpha + ndarray.HEAD - 8) != names[FLOAT]",
        "head.scaled == 0",
        "tests/elementwise/test_fast_forms.py -k alpha",
    ),
    (
        "jit/compile/routine.py",
        "reported(builder, status.is_error)",
        "pass",
        "tests/disk/test_cache.py -k in_a_loop",
    ),
    ("jit/compile/compiler.py", "check(self._final_module)", "pass", "tests/disk/test_cache.py -k may_raise"),
    ("jit/compile/error_model.py", 'flags.error_model = "numpy"', "pass", "tests/disk/test_cache.py -k may_raise"),
    (
        "jit/compile/error_model.py",
        "OWN.get(impl.__name__, impl)",
        "impl",
        "tests/elementwise/test_frozen_functions.py -k square_roots",
    ),
    (
        "jit/compile/lower.py",
        "self.builder.select(empty, step.type(1), step)",
        "step",
        "tests/disk/test_cache.py -k step_0",
    ),
    (
        "scalar/complexes.py",
        "half = max(511 -",
        "half = 0 * max(511 -",
        "tests/elementwise/test_one_operand.py -k roots",
    ),
    (
        "cpu/runtime/threads.py",
        "            for task in range(helper + 1, tasks, helpers + 1):\n                invoke(",
        "            for task in range(0):\n                invoke(",
        "tests/runtime/test_threads.py -k 'every_task or never_comes'",
    ),
    (
        "cpu/runtime/threads.py",
        "place.first, place.step, place.tasks = helper + 1, helpers + 1, tasks",
        "place.first, place.step, place.tasks = helper + 1, helpers + 1, tasks - 1",
        f"{GUARDS} -k awake",
    ),
    ("cpu/runtime/threads.py", "set_modes(pool.modes)", "pool.modes", "tests/runtime/test_threads.py -k computes"),
    (
        "cpu/runtime/threads.py",
        "    for helper in range(helpers):\n        wait(",
        "    for helper in range(0):\n        wait(",
        "tests/runtime/test_threads.py",
    ),
    (
        "cpu/elementwise/plan_cache.py",
        "if touch and (at != start or r.same[p] == 0):",
        "if touch and at != start:",
        f"{GUARDS} -k met_before",
    ),
    (
        "cpu/elementwise/plan_cache.py",
        "if not found or (out != 0 and flags(out) & WRITEABLE == 0):",
        "if not found:",
        "tests/elementwise/test_remembered_layouts.py -k overlap",
    ),
    (
        "cpu/gemv/dot.py",
        "if (sa | ra | sb | rb) & (width - 1) != 0:",
        "if (sa | ra | rb) & (width - 1) != 0:",
        f"{GUARDS} -k inner",
    ),
    ("cpu/gemm/checks.py", "odd |= odd_b | odd_x", "odd |= odd_b", f"{GUARDS} -k records"),
    (
        "cpu/gemm/checks.py",
        "(b0 < high and low < b1)",
        "(b0 < high and low < b0)",
        "tests/product/test_gemm.py -k overlap",
    ),
    (
        "cpu/gemm/checks.py",
        "if ndim(x) > ndim(out):",
        "if ndim(x) > 9 + ndim(out):",
        "tests/product/test_general_entry.py -k no_more_dimensions",
    ),
    (
        "cpu/gemm/context.py",
        "up(rows * columns * size_t, 64)",
        "up(rows * (columns - 1) * size_t, 64)",
        "tests/product/test_memory.py -k buffers",
    ),
    (
        "cpu/gemm/loops.py",
        "(j * words * f.step if m > f.stretch else 0)",
        "0",
        "tests/product/test_gemm.py -k larger_than_the_caches",
    ),
    ("cpu/gemm/thin.py", "f.room + j * f.k * size if f.part > 0", "f.room if f.part > 0", f"{PATHS} -k thin"),
    ("cpu/gemm/deep.py", "f.x + j * size if f.x != 0 else 0", "f.x", f"{PATHS} -k deep"),
    ("cpu/gemm/short.py", "last and stop != MEMORY else PARTIAL", "stop != MEMORY else PARTIAL", f"{PATHS} -k short"),
    ("cpu/gemm/columns.py", "own = f.room + piece * f.share if", "own = f.room if", f"{PATHS} -k columns"),
    ("cpu/gemm/context.py", "f.csc, f.rsc, f.csx, f.rsx", "f.csc, f.rsc, f.rsx, f.csx", f"{PATHS} -k gemv"),
    ("cpu/gemv/other_dtypes.py", "f.unit != 0 and c[1] == 1", "c[1] == 1", f"{VECTORS} -k factors"),
    ("cpu/gemv/other_dtypes.py", "direct = f.k <= SEGMENT and", "direct =", f"{VECTORS} -k other_dtypes_have"),
    ("cpu/gemm/kernels.py", "kind=tile.kind.swapped()", "kind=tile.kind", f"{VECTORS} -k factors"),
]

MUTANTS = [
    *PURE,
    *PRODUCTS,
    *(Mutant(f"nbkernels/{file}", *rest) for file, *rest in HOST),
    *(Mutant(*rest) for rest in OTHERS),
    *(Mutant(f"nbkernels/{file}", *rest, compiled=True) for file, *rest in COMPILED),
]
