"""THE TABLE: every op of the library, its schema, its rules, its kernels and its derivative.

The one module that knows both the dispatcher and the kernels. Kernels are named, "module:function", and imported at the
first call that needs them, so that importing the library imports no compiler. See CONTRIBUTING.md, "Add an operation".
"""

from . import binary, folds, meta, methods, products, unary
from .dispatch import Library, arrays, operators
from .operations import BINARY, BY_NAME, ELEMENTWISE, FLAT

LIBRARY = Library("nbkernels", composites="nbkernels.composites", fit="nbkernels.autograd.gradients:fit",
                  first="nbkernels.first_calls:first",
                  replays=dict.fromkeys(("numba.cuda", "CuPy", "torch"), "nbkernels.cuda.replay:replay"),
                  lenders={"NumPy": "nbkernels.tensor_calls:subclasses", "torch": "nbkernels.tensor_calls:tensors",
                           "traced": "nbkernels.autograd.notes:noting",
                           "packed": "nbkernels.packing:at_once"})  # fmt: skip
define, register, register_fallback = LIBRARY.define, LIBRARY.register, LIBRARY.register_fallback
packet = LIBRARY.packet
arrays.register_adapter(arrays.Named("dask", ("dask.Array",), "nbkernels.dask.graphs:ADAPTER"))

# -- matrix products --------------------------------------------------------------------------------------------------

KEYWORDS = "ScalarType? out_dtype=None, str? mode=None, str? conj=None"
CUT = f"{KEYWORDS}, int[]? tiles=None"

addmm, addmm_ = define(
    f"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, {CUT}) -> Tensor",
    structured=meta.addmm,
    dispatch={"CPU": "nbkernels.cpu.gemm.gemm:addmm", "CUDA": "nbkernels.cuda.gemm:addmm"},
    fast="nbkernels.cpu.gemm.fast:addmm_fast",
    gradient="nbkernels.autograd.products:ADDMM",
    meta_only=["out_dtype"],
).forms

mm, mm_ = define(
    f"mm(Tensor self, Tensor mat2, *, {CUT}) -> Tensor",
    structured=meta.mm,
    dispatch={"CPU": "nbkernels.cpu.gemm.gemm:mm", "CUDA": "nbkernels.cuda.gemm:mm"},
    fast="nbkernels.cpu.gemm.fast:mm_fast",
    gradient="nbkernels.autograd.products:MM",
    meta_only=["out_dtype"],
).forms

addmm_activation, addmm_activation_ = define(
    "addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
    "str activation='relu', str approximate='none', ScalarType? out_dtype=None, str? mode=None, int[]? tiles=None) "
    "-> Tensor",
    structured=products.addmm_activation,
    dispatch={
        "CompositeExplicit": "nbkernels.composites:addmm_activation",
        "CUDA": "nbkernels.cuda.epilogue:addmm_activation",
    },
    fast="nbkernels.composites:addmm_activation_fast",
    gradient="nbkernels.autograd.products:ADDMM_ACTIVATION",
).forms

bmm, bmm_ = define(
    f"bmm(Tensor self, Tensor mat2, *, {CUT}) -> Tensor",
    structured=products.bmm,
    dispatch={"CPU": "nbkernels.cpu.gemm.batch:bmm", "CUDA": "nbkernels.cuda.gemm:bmm"},
    fast="nbkernels.cpu.gemm.batch:bmm_fast",
    gradient="nbkernels.autograd.products:BMM",
    meta_only=["out_dtype"],
).forms

baddbmm, baddbmm_ = define(
    f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, {CUT}) -> Tensor",
    structured=products.baddbmm,
    dispatch={"CPU": "nbkernels.cpu.gemm.batch:baddbmm", "CUDA": "nbkernels.cuda.gemm:baddbmm"},
    fast="nbkernels.cpu.gemm.batch:baddbmm_fast",
    gradient="nbkernels.autograd.products:BADDBMM",
    meta_only=["out_dtype"],
).forms

addbmm, addbmm_ = define(
    f"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1, {CUT}) -> Tensor",
    structured=products.addbmm,
    dispatch={"CompositeExplicit": "nbkernels.composites:addbmm"},
    fast="nbkernels.composites:addbmm_fast",
    gradient="nbkernels.autograd.products:ADDBMM",
).forms

mv = define(
    f"mv(Tensor self, Tensor vec, *, {KEYWORDS}) -> Tensor",
    structured=products.mv,
    dispatch={
        "CPU": "nbkernels.cpu.gemv.mv:mv",
        "CUDA": "nbkernels.cuda.mv:mv",
        "CompositeExplicit": "nbkernels.composites:mv",
    },
    fast="nbkernels.cpu.gemv.mv:mv_fast",
    gradient="nbkernels.autograd.products:MV",
).function

_mv_widened = define(
    "_mv_widened(Tensor self, Tensor vec) -> Tensor",
    structured=products.mv_widened,
    dispatch={"CPU": "nbkernels.cpu.gemv.mv:mv_widened", "CompositeExplicit": "nbkernels.composites:mv_widened"},
).function

addmv, addmv_ = define(
    f"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1, {KEYWORDS}) -> Tensor",
    structured=products.addmv,
    dispatch={
        "CPU": "nbkernels.cpu.gemv.mv:addmv",
        "CUDA": "nbkernels.cuda.mv:addmv",
        "CompositeExplicit": "nbkernels.composites:addmv",
    },
    fast="nbkernels.cpu.gemv.mv:addmv_fast",
    gradient="nbkernels.autograd.products:ADDMV",
).forms

outer = define(
    f"outer(Tensor self, Tensor vec2, *, {KEYWORDS}) -> Tensor",
    structured=products.outer,
    dispatch={"CompositeExplicit": "nbkernels.composites:outer"},
    fast="nbkernels.cpu.gemv.vectors:outer_fast",
    gradient="nbkernels.autograd.products:OUTER",
).function

addr, addr_ = define(
    f"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1, {KEYWORDS}) -> Tensor",
    structured=products.addr,
    dispatch={"CompositeExplicit": "nbkernels.composites:addr"},
    fast="nbkernels.cpu.gemv.vectors:addr_fast",
    gradient="nbkernels.autograd.products:ADDR",
).forms

dot = define(
    f"dot(Tensor self, Tensor tensor, *, {KEYWORDS}) -> Tensor",
    structured=products.dot,
    dispatch={
        "CPU": "nbkernels.cpu.gemv.dot:dot",
        "CUDA": "nbkernels.cuda.mv:dot",
        "CompositeExplicit": "nbkernels.composites:dot",
    },
    fast="nbkernels.cpu.gemv.dot:dot_fast",
    gradient="nbkernels.autograd.products:DOT",
).function

vdot = define(
    "vdot(Tensor self, Tensor other, *, ScalarType? out_dtype=None, str? mode=None) -> Tensor",
    structured=products.vdot,
    dispatch={
        "CPU": "nbkernels.cpu.gemv.dot:vdot",
        "CUDA": "nbkernels.cuda.mv:vdot",
        "CompositeExplicit": "nbkernels.composites:vdot",
    },
    fast="nbkernels.cpu.gemv.dot:vdot_fast",
    gradient="nbkernels.autograd.products:VDOT",
).function

matmul = define(
    f"matmul(Tensor input, Tensor other, *, {CUT}) -> Tensor",
    structured=products.matmul,
    dispatch={"CompositeExplicit": "nbkernels.composites:matmul"},
    fast="nbkernels.cpu.gemv.vectors:matmul_fast",
    gradient="nbkernels.autograd.products:MATMUL",
).function

linear = define(
    f"linear(Tensor input, Tensor weight, Tensor? bias=None, *, {CUT}) -> Tensor",
    structured=meta.linear,
    dispatch={"CompositeExplicit": "nbkernels.composites:linear"},
    fast="nbkernels.cpu.gemv.vectors:linear_fast",
    gradient="nbkernels.autograd.products:LINEAR",
).function

# -- element-wise, broadcasting ---------------------------------------------------------------------------------------


_reduce = define(
    "reduce(Tensor self, str op='add', int[] axis=[0], *, bool keepdims=False, Scalar? initial=None, "
    "Tensor? where=None, ScalarType? dtype=None) -> Tensor",
    structured=folds.reduce,
    dispatch={"CPU": "nbkernels.cpu.reduce.folds:reduce", "CUDA": "nbkernels.cuda.folds:reduce"},
    fast="nbkernels.cpu.reduce.folds:reduce_fast",
    gradient="nbkernels.autograd.folds:REDUCE",
    casts=binary.Result.casts,
    called=lambda self, op, *others: f"{op}.reduce",
).function

_accumulate = define(
    "accumulate(Tensor self, str op='add', int[] axis=[0], *, ScalarType? dtype=None) -> Tensor",
    structured=folds.accumulate,
    dispatch={"CPU": "nbkernels.cpu.reduce.folds:accumulate", "CUDA": "nbkernels.cuda.folds:accumulate"},
    fast="nbkernels.cpu.reduce.folds:accumulate_fast",
    gradient="nbkernels.autograd.folds:ACCUMULATE",
    casts=binary.Result.casts,
    called=lambda self, op, *others: f"{op}.accumulate",
).function


AT = LIBRARY.stub(
    "at",
    takes="op self indices other",
    dispatch={"CPU": "nbkernels.cpu.reduce.scan:at", "CUDA": "nbkernels.cuda.at:at"},
    fast="nbkernels.cpu.reduce.scan:at_fast",
)

FUSED = LIBRARY.stub(
    "elementwise",
    takes="function outs inputs where fresh",
    dispatch={"CPU": "nbkernels.cpu.elementwise.fused:run", "CUDA": "nbkernels.cuda.fused:run"},
    fast="nbkernels.cpu.elementwise.fused:at_once",
)


ENDED = LIBRARY.stub(
    "epilogue",
    takes="function out before dtype input mat1 mat2 operands how",
    dispatch={"CPU": "nbkernels.cpu.gemm.epilogue:run", "CUDA": "nbkernels.cuda.epilogue:run"},
)


WORDS = "Tensor? where=None, str? casting=None, str? order=None, ScalarType? dtype=None"


def elementwise(op, row):
    """Define an element-wise operation by its row and its name in scalar/ and NumPy; its two forms."""
    two = op in BINARY
    other, scale = "Tensor other, " if two else "", "Scalar alpha=1, " if row.scaled else ""
    new = define(
        f"{op}(Tensor self, {other}{row.takes}*, {scale}{WORDS}) -> Tensor",
        structured=(binary if two else unary).rule(op),
        dispatch={"CPU": f"nbkernels.cpu.elementwise.elementwise:{op}", "CUDA": f"nbkernels.cuda.elementwise:{op}"},
        fast=f"nbkernels.cpu.elementwise.fast:{op}_fast",
        gradient=f"nbkernels.autograd.gradients:{op.upper()}" if row.slope == BY_NAME else None,
        casts=binary.Result.casts,
        meta_only=["order"],
        tags=["elementwise"] if two else ["elementwise", "unary"],
        output_differentiability=row.slope != FLAT,
    )
    if two:
        methods.attach(new.function, _reduce, _accumulate, AT)
    return new.forms


for _op, _row in ELEMENTWISE.items():
    globals()[_op], globals()[f"{_op}_"] = elementwise(_op, _row)
add, fmax = globals()["add"], globals()["fmax"]

# -- reductions -------------------------------------------------------------------------------------------------------

sum_to = define(
    "sum_to(Tensor(a) self, int[] size) -> Tensor(a)",
    structured=meta.sum_to,
    dispatch={"CPU": "nbkernels.cpu.reduce.reduce:sum_to", "CUDA": "nbkernels.cuda.reduce:sum_to"},
    fast="nbkernels.cpu.reduce.reduce:sum_to_fast",
    gradient="nbkernels.autograd.gradients:SUM_TO",
    meta_only=["size"],
).function


def copy(x, out=None, dtype=None, order="C"):
    """x in a new array, or in out: bit for bit in its own dtype, as x * 1 is not, which of inf + 0j is inf + nanj."""
    return fmax(x, x, out=out, dtype=dtype, order=order)


OPERATORS = (*operators.SYMBOLS.values(), *operators.COMPARISONS.values(), "equal", "not_equal")
operators.provide({name: globals()[name] for name in OPERATORS} | {"sum": add.reduce, "copy": copy})

OPERATIONS = [name for name, value in list(globals().items()) if hasattr(value, "schema") and name[0] != "_"]
__all__ = ["define", "packet", "register", "register_fallback", *OPERATIONS]
