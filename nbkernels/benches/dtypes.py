"""mm of n x n matrices of every dtype, ours and the peers'."""

import numpy as np

import nbkernels

from ..jit.ir.chain import ways
from ..tuning.matrices import matrix
from . import peers

# name: operands, keywords
CASES = {
    "float32": (("float32", "float32"), {}),
    "float64": (("float64", "float64"), {}),
    "float16": (("float16", "float16"), {}),
    "bfloat16": (("bfloat16", "bfloat16"), {}),
    "bfloat16 bf16_dot": (("bfloat16", "bfloat16"), {"mode": "bf16_dot"}),
    "int8 -> int32": (("int8", "int8"), {"out_dtype": "int32"}),
    "uint8, int8 -> int32": (("uint8", "int8"), {"out_dtype": "int32"}),
    "int8": (("int8", "int8"), {}),
    "int16": (("int16", "int16"), {}),
    "int32": (("int32", "int32"), {}),
    "int64": (("int64", "int64"), {}),
    "bool": (("bool", "bool"), {}),
    "complex64": (("complex64", "complex64"), {}),
    "complex128": (("complex128", "complex128"), {}),
}
SIZES = (4, 16, 64, 256, 1024)
SLOW = 256  # the largest n for NumPy's plain loops


def names():
    """Names of the CASES; those with a mode only where this processor has the instruction for bfloat16."""
    return [name for name, (_, keywords) in CASES.items() if "mode" not in keywords or "bf16" in ways()]


def tensor(x):
    """A NumPy array as torch's."""
    torch, half = peers.torch(), x.dtype.name == "bfloat16"
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if half else torch.from_numpy(x)


def calls(name, n):
    """{library: the call} for n x n operands; a peer is there where it has the same product."""
    (left, right), keywords = CASES[name]
    rng = np.random.default_rng(0)
    a, b = matrix(rng, n, n, left), matrix(rng, n, n, right)
    out = nbkernels.mm(a, b, **keywords)
    result = {"nbkernels": lambda: nbkernels.mm(a, b, out=out, **keywords)}
    blas = left.startswith("complex") or left in ("float32", "float64")
    if not keywords and left != "bfloat16" and (n <= SLOW or blas):
        result["NumPy"] = lambda: np.matmul(a, b, out=out)
    if (torch := peers.torch()) and left != "bool" and left == right:
        ta, tb = map(tensor, (a, b))
        if keywords.get("out_dtype"):
            result["torch"] = lambda: torch._int_mm(ta, tb)
            if n <= 16:
                del result["torch"]  # it wants more than 16 rows
        else:
            tout = torch.empty(n, n, dtype=ta.dtype)
            result["torch"] = lambda: torch.mm(ta, tb, out=tout)
    return result
