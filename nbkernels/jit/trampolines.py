"""C functions of four arguments that each know one address more: NumPy's loops get none of ours.

    void(a, b, c, d)  calls  *slot(a, b, c, d, slot)

`slot` is the address of a function's own words, the first of which is what it calls: a store there gives it another
body. They hold addresses of the process, so none is kept on disk: 60 take 30 ms, 500 take 200 (Zen 4, 2026-11).
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from .vector import I64, VOID

_ALIVE = []  # a thread may be in one at any time


@global_compiler_lock
def trampolines(slots: list[int]) -> list[int]:
    """The address of a function for each address of a slot."""
    cpu_target.target_context  # noqa: B018 it starts LLVM
    module = ir.Module("trampolines")
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    for i, slot in enumerate(slots):
        function = ir.Function(module, ir.FunctionType(VOID, [I64] * 4), f"trampoline_{i}")
        builder = ir.IRBuilder(function.append_basic_block())
        body = builder.load_atomic(builder.inttoptr(I64(slot), I64.as_pointer()), "acquire", 8)
        kind = ir.FunctionType(VOID, [I64] * 5).as_pointer()
        builder.call(builder.inttoptr(body, kind), [*function.args, I64(slot)], tail=True)
        builder.ret_void()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), machine)
    engine.finalize_object()
    _ALIVE.append(engine)
    return [engine.get_function_address(f"trampoline_{i}") for i in range(len(slots))]
