"""THE TABLE: every op of the library, its schema, its rules, its kernels and its derivative.

The one module that knows both the dispatcher and the kernels. Kernels are named, "module:function", and imported at the
first call that needs them, so that importing the library imports no compiler. See ARCHITECTURE.md, "add an op".
"""

from . import meta, products
from .dispatch import Library

LIBRARY = Library("nbkernels", composites="nbkernels.composites")
define, register = LIBRARY.define, LIBRARY.register

# -- matrix products --------------------------------------------------------------------------------------------------

addmm, addmm_ = define(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
    "ScalarType? out_dtype=None, str? mode=None, str conj='') -> Tensor",
    structured=meta.addmm,
    dispatch={"CPU": "nbkernels.cpu.gemm:addmm", "CUDA": "nbkernels.cuda.gemm:addmm"},
    fast="nbkernels.cpu.gemm:addmm_call",
    gradient="nbkernels.gradients:ADDMM",
    meta_only=["out_dtype"],
).forms

mm, mm_ = define(
    "mm(Tensor self, Tensor mat2, *, ScalarType? out_dtype=None, str? mode=None, str conj='') -> Tensor",
    structured=meta.mm,
    dispatch={"CPU": "nbkernels.cpu.gemm:mm", "CUDA": "nbkernels.cuda.gemm:mm"},
    fast="nbkernels.cpu.gemm:mm_call",
    gradient="nbkernels.gradients:MM",
    meta_only=["out_dtype"],
).forms

bmm = define(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    structured=products.bmm,
    dispatch={"CPU": "nbkernels.cpu.batch:bmm", "CUDA": "nbkernels.cuda.batch:bmm"},
    fast="nbkernels.cpu.batch:bmm_fast",
    gradient="nbkernels.gradients:BMM",
).function

baddbmm, baddbmm_ = define(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    structured=products.baddbmm,
    dispatch={"CPU": "nbkernels.cpu.batch:baddbmm", "CUDA": "nbkernels.cuda.batch:baddbmm"},
    fast="nbkernels.cpu.batch:baddbmm_fast",
    gradient="nbkernels.gradients:BADDBMM",
).forms

addbmm, addbmm_ = define(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    structured=products.addbmm,
    dispatch={"CompositeExplicit": "nbkernels.composites:addbmm"},
    gradient="nbkernels.gradients:ADDBMM",
).forms

mv = define(
    "mv(Tensor self, Tensor vec) -> Tensor",
    structured=products.mv,
    dispatch={"CompositeExplicit": "nbkernels.composites:mv"},
    fast="nbkernels.cpu.vectors:mv_fast",
    gradient="nbkernels.gradients:MV",
).function

addmv, addmv_ = define(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    structured=products.addmv,
    dispatch={"CompositeExplicit": "nbkernels.composites:addmv"},
    fast="nbkernels.cpu.vectors:addmv_fast",
    gradient="nbkernels.gradients:ADDMV",
).forms

outer = define(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    structured=products.outer,
    dispatch={"CompositeExplicit": "nbkernels.composites:outer"},
    fast="nbkernels.cpu.vectors:outer_fast",
    gradient="nbkernels.gradients:OUTER",
).function

addr, addr_ = define(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    structured=products.addr,
    dispatch={"CompositeExplicit": "nbkernels.composites:addr"},
    fast="nbkernels.cpu.vectors:addr_fast",
    gradient="nbkernels.gradients:ADDR",
).forms

dot = define(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    structured=products.dot,
    dispatch={"CompositeExplicit": "nbkernels.composites:dot"},
    gradient="nbkernels.gradients:DOT",
).function

vdot = define(
    "vdot(Tensor self, Tensor other) -> Tensor",
    structured=products.vdot,
    dispatch={"CompositeExplicit": "nbkernels.composites:vdot"},
    gradient="nbkernels.gradients:VDOT",
).function

matmul = define(
    "matmul(Tensor input, Tensor other) -> Tensor",
    structured=products.matmul,
    dispatch={"CompositeExplicit": "nbkernels.composites:matmul"},
    fast="nbkernels.cpu.vectors:matmul_fast",
    gradient="nbkernels.gradients:MATMUL",
).function

linear = define(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    structured=meta.linear,
    dispatch={"CompositeExplicit": "nbkernels.composites:linear"},
    fast="nbkernels.composites:linear_fast",
    gradient="nbkernels.gradients:LINEAR",
).function

# -- element-wise, broadcasting ---------------------------------------------------------------------------------------

add, add_ = define(
    "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    structured=meta.add,
    dispatch={"CPU": "nbkernels.cpu.elementwise:add", "CUDA": "nbkernels.cuda.elementwise:add"},
    fast="nbkernels.cpu.elementwise:add_fast",
    gradient="nbkernels.gradients:ADD",
    casts=meta.same_kind,
    tags=["elementwise"],
).forms

subtract, subtract_ = define(
    "subtract(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    structured=meta.subtract,
    dispatch={"CPU": "nbkernels.cpu.elementwise:subtract", "CUDA": "nbkernels.cuda.elementwise:subtract"},
    fast="nbkernels.cpu.elementwise:subtract_fast",
    gradient="nbkernels.gradients:SUBTRACT",
    casts=meta.same_kind,
    tags=["elementwise"],
).forms

multiply, multiply_ = define(
    "multiply(Tensor self, Tensor other) -> Tensor",
    structured=meta.multiply,
    dispatch={"CPU": "nbkernels.cpu.elementwise:multiply", "CUDA": "nbkernels.cuda.elementwise:multiply"},
    fast="nbkernels.cpu.elementwise:multiply_fast",
    gradient="nbkernels.gradients:MULTIPLY",
    casts=meta.same_kind,
    tags=["elementwise"],
).forms

divide, divide_ = define(
    "divide(Tensor self, Tensor other) -> Tensor",
    structured=meta.divide,
    dispatch={"CPU": "nbkernels.cpu.elementwise:divide", "CUDA": "nbkernels.cuda.elementwise:divide"},
    fast="nbkernels.cpu.elementwise:divide_fast",
    gradient="nbkernels.gradients:DIVIDE",
    casts=meta.same_kind,
    tags=["elementwise"],
).forms

maximum, maximum_ = define(
    "maximum(Tensor self, Tensor other) -> Tensor",
    structured=meta.maximum,
    dispatch={"CPU": "nbkernels.cpu.elementwise:maximum", "CUDA": "nbkernels.cuda.elementwise:maximum"},
    fast="nbkernels.cpu.elementwise:maximum_fast",
    gradient="nbkernels.gradients:MAXIMUM",
    casts=meta.same_kind,
    tags=["elementwise"],
).forms

minimum, minimum_ = define(
    "minimum(Tensor self, Tensor other) -> Tensor",
    structured=meta.minimum,
    dispatch={"CPU": "nbkernels.cpu.elementwise:minimum", "CUDA": "nbkernels.cuda.elementwise:minimum"},
    fast="nbkernels.cpu.elementwise:minimum_fast",
    gradient="nbkernels.gradients:MINIMUM",
    casts=meta.same_kind,
    tags=["elementwise"],
).forms

# -- reductions -------------------------------------------------------------------------------------------------------

sum_to = define(
    "sum_to(Tensor(a) self, int[] size) -> Tensor(a)",
    structured=meta.sum_to,
    dispatch={"CPU": "nbkernels.cpu.reduce:sum_to", "CUDA": "nbkernels.cuda.reduce:sum_to"},
    gradient="nbkernels.gradients:SUM_TO",
    meta_only=["size"],
).function
