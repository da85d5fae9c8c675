"""Opcodes -> how they are compiled. A module of instructions fills `TABLE` by `@instruction("name", ...)`."""

from __future__ import annotations

import re
from collections.abc import Callable

from .machine import Code, Compiled
from .operands import Operands
from .parse import Instruction, parse

TABLE: dict[str, tuple[Callable, bool, bool]] = {}


def instruction(*names: str, control: bool = False, warps: bool = False):
    """Registers how opcodes that begin with one of these names are compiled: make(instruction, operands) -> run.

    run(threads, lanes) carries it out. Longer names go before shorter ones.
    """

    def registered(make):
        TABLE.update(dict.fromkeys(names, (make, control, warps)))
        return make

    return registered


def find(opcode: str) -> tuple[Callable, bool, bool]:
    parts = opcode.split(".")
    for length in range(len(parts), 0, -1):
        if found := TABLE.get(".".join(parts[:length])):
            return found
    raise NotImplementedError(f"the interpreter has no {opcode}")


def compiled(ptx: str) -> Compiled:
    """A module's text, ready to run."""
    program = parse(ptx)
    operands = Operands(program)
    codes = []
    for each in program.instructions:
        make, control, warps = find(each.opcode)
        guard = operands.read(("!" if each.guard[1] else "") + each.guard[0], "pred") if each.guard else None
        try:
            codes.append(Code(make(each, operands), guard, control, warps, str(each)))
        except (ValueError, KeyError, IndexError) as error:
            error.add_note(f"in {each}")
            raise
    return Compiled(program, operands, codes, cell(program.instructions))


def cell(instructions: list[Instruction]) -> int:
    """Bytes of the smallest store to shared memory, at most 4."""
    stores = [each for each in instructions if each.parts[0] in ("st", "atom", "red")
              and not {"global", "param", "local"} & set(each.parts)]  # fmt: skip
    sizes = [re.search(r"\.[a-z]+(\d+)$", each.opcode) for each in stores]
    return min([4, *(int(size[1]) // 8 for size in sizes if size)])
