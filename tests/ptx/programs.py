"""Small programs for the tests of the interpreter, and what they make of numbers."""

from __future__ import annotations

import numpy as np

from .launch import run as launch
from .memory import Memory

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
REGISTERS = """.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<60>; .reg .f32 %f<140>;
.reg .b64 %rd<30>; .reg .f64 %fd<30>;
mov.u32 %r0, %tid.x;
"""


def program(body: str, parameters, shared: int = 0) -> str:
    """A module around a body that has its thread's number in %r0, and parameters of 64 bits in %rd0, %rd1...

    A parameter's kind "map" is a tensor map's; `shared` is the size of the variable smem.
    """
    kinds = [".align 64 .b8" if kind == "map" else f".{kind}" for kind in parameters]
    listed = ", ".join(f".param {kind} p{i}{'[128]' * ('align' in kind)}" for i, kind in enumerate(kinds))
    memory = f".shared .align 1024 .b8 smem[{shared}];" if shared else ""
    start = "".join(f"ld.param.u64 %rd{i}, [p{i}];\n" for i, kind in enumerate(parameters) if kind == "u64")
    return f"{HEAD}.visible .entry kernel({listed})\n{{\n{memory}{REGISTERS}{start}{body}\nret;\n}}\n"


def run(body: str, *arrays, threads=32, grid=1, shared=0, cluster=1, more=(), kinds=()):
    """Run a body on arrays, whose addresses are its first parameters; `more` are the others, of these kinds."""
    text = program(body, ["u64"] * len(arrays) + list(kinds), shared)
    arguments = [*(x.ctypes.data for x in arrays), *more]
    launch(text, grid, threads, arguments, Memory(*arrays), cluster=cluster)
    return arrays


def each(operation: str, values, dtype="u4", inputs=1) -> np.ndarray:
    """What a body makes of values, one for each thread, or `inputs` of them.

    They are in %r1, %r2, %r3, and it leaves its result in %r9; of 64 bits in %rd11, %rd12, %rd13 and %rd19.
    """
    data = np.array(values, dtype).reshape(-1, inputs)
    out, size = np.zeros(len(data), dtype), data.itemsize
    register, first, last = ("%rd", 11, 19) if size == 8 else ("%r", 1, 9)
    body = f"mul.wide.u32 %rd5, %r0, {size * inputs}; add.u64 %rd5, %rd5, %rd1; mul.wide.u32 %rd6, %r0, {size};"
    body += "add.u64 %rd6, %rd6, %rd0;"
    body += "".join(f"ld.global.b{8 * size} {register}{first + i}, [%rd5+{size * i}];" for i in range(inputs))
    body += operation + f"st.global.b{8 * size} [%rd6], {register}{last};"
    run(body, out, data.ravel(), threads=len(data))
    return out
