"""Code for a level of processors, whatever processor is present: what `prebuild` compiles.

The process takes the level for its target, so that kernels, tiles and names are the level's; LLVM optimises for it, and
its machine code goes to the package. Kernels run while they are built, so the same IR becomes machine code for the
host, too: LLVM cuts vectors that are too wide, and instructions that the host lacks are written out.
"""

from __future__ import annotations

import re
from pathlib import Path

from llvmlite import binding

from ..disk import levels
from . import compiler
from .numba_internals import JITCodeLibrary, cgutils, config, cpu_target


def start(level: levels.Level, out: Path) -> None:
    """From here on this process compiles for the level; files appear in `out`. Before any kernel is imported."""
    triple, _, host = levels.target()
    if level.family != levels.family(triple):
        raise ValueError(f"{level} cannot be compiled on {triple}")
    codegen = cpu_target.target_context.codegen()
    options = dict(opt=config.OPT)
    codegen._customize_tm_options(options)
    options |= dict(cpu=level.cpu, features=",".join(f"+{name}" for name in sorted(level.features)))
    codegen._tm = binding.Target.from_triple(triple).create_target_machine(**options)
    codegen._library_class, compiler.Kernel.library = Library, KernelLibrary
    _Both.lacking = level.features - host
    levels.building, levels.out = level, out
    for function in (levels.target, levels.processor, levels.serving, levels.directory):
        function.cache_clear()


class _Both:
    """A library whose IR is the level's, and is run as the host's code."""

    lacking: frozenset[str] = frozenset()
    level = None  # the module that is the level's

    def _finalize_final_module(self):
        self.level = self._final_module.clone()
        if self.lacking and _OWN.search(text := str(self._final_module)):
            self._final_module = binding.parse_assembly(written_out(text))
            self._final_module.name = cgutils.normalize_ir_text(self.name)
        super()._finalize_final_module()

    def _get_module_for_linking(self):
        if self._shared_module is None and self.level is not None:
            run, self._final_module = self._final_module, self.level
            try:
                return super()._get_module_for_linking()
            finally:
                self._final_module = run
        return super()._get_module_for_linking()


class Library(_Both, JITCodeLibrary):
    """One that Numba compiles: a function of the user's."""


class KernelLibrary(_Both, compiler.Library):
    """One of the package's own."""

    def module(self, linkable):
        return self._get_module_for_linking() if linkable else self.level


def machine_code(library) -> bytes:
    """The level's, of what was compiled for it."""
    return library.codegen._tm.emit_object(library.level.clone())  # which changes the module


# -- instructions that the host lacks ----------------------------------------------------------------------------------

_OWN = re.compile(r'@llvm\.x86\.avx512|asm sideeffect "", "x"')


def written_out(text: str) -> str:
    """A module's text with plain IR for the instructions of AVX-512 that IR has no words for, and without the uses of
    vectors that keep them in registers (vector.used), which may be too wide for these."""
    text = re.sub(r'^.* asm sideeffect "", "x"\(.*\n', "", text, flags=re.MULTILINE)
    for name, bits in set(re.findall(r"@llvm\.x86\.(avx512[\w.]*?)\.(\d+)\(", text)):
        text = re.sub(rf"^declare .*@llvm\.x86\.{re.escape(name)}\.{bits}\(.*\n", "", text, flags=re.MULTILINE)
        text = text.replace(f"@llvm.x86.{name}.{bits}(", f"@nbkernels.{name}.{bits}(")
        text += _FUNCTIONS[name](f"@nbkernels.{name}.{bits}", int(bits) // 32)
    return text


def _sums(result: str, products: str, lanes: int, group: int) -> list[str]:
    """Lines that add the products of each `group` of neighbours: %s{group - 1} is the last sum."""
    lines = []
    for part in range(group):
        pick = ", ".join(f"i32 {group * lane + part}" for lane in range(lanes))
        wide = f"<{group * lanes} x {result}>"
        lines.append(f"%p{part} = shufflevector {wide} {products}, {wide} poison, <{lanes} x i32> <{pick}>")
    return lines


def _function(name: str, lanes: int, result: str, arguments: list[str], lines: list[str]) -> str:
    given = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(arguments))
    body = "\n  ".join(lines)
    return f"\ndefine internal <{lanes} x {result}> {name}({given}) {{\n  {body}\n}}\n"


def _whole(name: str, lanes: int, group: int, item: str, extend: tuple[str, str], chained: bool) -> str:
    """Sums of products of integers, each extended to 32 bits, and of a chain before them."""
    taken, wide, kind = f"<{group * lanes} x {item}>", f"<{group * lanes} x i32>", f"<{lanes} x i32>"
    first = int(chained)
    lines = [f"%x{i} = {extend[i]} {taken} %a{first + i} to {wide}" for i in range(2)]
    lines += [f"%m = mul {wide} %x0, %x1", *_sums("i32", "%m", lanes, group)]
    total = "%a0" if chained else "zeroinitializer"
    for part in range(group):
        lines.append(f"%s{part} = add {kind} {total}, %p{part}")
        total = f"%s{part}"
    return _function(name, lanes, "i32", [kind] * chained + [taken, taken], [*lines, f"ret {kind} {total}"])


def _bytes(name: str, lanes: int) -> str:
    """vpdpbusd: an i32 and the products of four unsigned and signed bytes."""
    return _whole(name, lanes, 4, "i8", ("zext", "sext"), chained=True)


def _pairs(name: str, lanes: int) -> str:
    """vpmaddwd: the products of two i16."""
    return _whole(name, lanes, 2, "i16", ("sext", "sext"), chained=False)


def _bf16(name: str, lanes: int) -> str:
    """vdpbf16ps: a float and two products, but for its flushing of denormals."""
    taken, kind, wide = f"<{2 * lanes} x bfloat>", f"<{lanes} x float>", f"<{2 * lanes} x float>"
    lines = [f"%x{i} = fpext {taken} %a{1 + i} to {wide}" for i in range(2)]
    lines += [f"%m = fmul {wide} %x0, %x1", *_sums("float", "%m", lanes, 2)]
    lines += [f"%s0 = fadd {kind} %a0, %p1", f"%s1 = fadd {kind} %s0, %p0", f"ret {kind} %s1"]
    return _function(name, lanes, "float", [kind, taken, taken], lines)


_FUNCTIONS = {"avx512.vpdpbusd": _bytes, "avx512.pmaddw.d": _pairs, "avx512bf16.dpbf16ps": _bf16}
