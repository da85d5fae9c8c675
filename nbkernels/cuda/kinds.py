"""The kind of a product by its dtypes: as on the CPU, without the kinds that need instructions of the CPU."""

from __future__ import annotations

import functools

from ..jit.ir.kind import SIGNLESS, Kind


@functools.cache
def kind_of(a: str, b: str, out: str, conj: str = "", mode: str | None = None) -> Kind:
    """The kind for operands and a result of these dtypes, by NumPy's names; of mode "chain" all kinds are.

    >>> kind_of("bfloat16", "bfloat16", "bfloat16").chain, kind_of("uint8", "int8", "int32").way
    ('float32', 'mul')
    """
    if mode == "tf32":
        raise ValueError("mode 'tf32' is for products of matrices on compute capability 8.0 or newer; leave mode out")
    if mode not in (None, "chain"):
        raise ValueError(f"mode {mode!r} is an instruction of CPUs; leave mode out on CUDA")
    if a in ("float16", "bfloat16"):
        return Kind(a, b, "float32", out)
    if a.startswith(("float", "complex")):
        return Kind(a, b, a, out, conj=conj)
    a, b, out = (SIGNLESS.get(name, name) for name in (a, b, out))
    if out in ("int8", "uint8"):  # modulo 256 signs do not matter
        a, b, out = "int8", "int8", "int8"
    return Kind(a, b, a if a in ("int32", "int64") else "int32", out, "mul")
