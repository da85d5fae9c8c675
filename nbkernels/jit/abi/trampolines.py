"""Trampolines: C functions of four arguments that each know one address more, which NumPy does not pass to its loops.

    void(a, sizes, c, d)  calls  *slot(a, sizes, c, d, slot), or, where sizes[0] < slot[2], *slot[1](a, sizes, c, d)

`slot` is the address of a function's own words: a store there gives it another body. The functions hold addresses of
the process, so none is kept on disk: 60 take 30 ms, 500 take 200. What is small goes on after 3 ns, where a body that
asks the same takes 50 (AVX2, 2026-11).
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir

from ..disk.load import linking
from ..ir.vector import I64, VOID

_ALIVE = []  # a thread may be in one at any time


def trampolines(slots: list[int]) -> list[int]:
    """The address of a function for each address of a slot."""
    module = ir.Module("trampolines")
    for i, slot in enumerate(slots):
        function = ir.Function(module, ir.FunctionType(VOID, [I64] * 4), f"trampoline_{i}")
        _emit(ir.IRBuilder(function.append_basic_block()), function.args, slot)
    with linking():
        machine = llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), machine)
        engine.finalize_object()
    _ALIVE.append(engine)
    return [engine.get_function_address(f"trampoline_{i}") for i in range(len(slots))]


def _emit(builder, args, slot):
    words = builder.inttoptr(I64(slot), I64.as_pointer())

    def go(place, *arguments):
        body = builder.load_atomic(builder.gep(words, [I64(place)]), "acquire", 8)
        kind = ir.FunctionType(VOID, [I64] * len(arguments)).as_pointer()
        builder.call(builder.inttoptr(body, kind), arguments, tail=True)
        builder.ret_void()

    size = builder.load(builder.inttoptr(args[1], I64.as_pointer()))
    least = builder.load(builder.gep(words, [I64(2)]))
    with builder.if_then(builder.icmp_signed("<", size, least)):
        go(1, *args)
    go(0, *args, I64(slot))
