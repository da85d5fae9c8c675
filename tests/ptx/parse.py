"""PTX text -> Program: instructions with resolved names, labels, registers, variables, functions. Nothing runs here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

SIZES = {"pred": 1, "b128": 16} | {
    kind + str(bits): bits // 8 for kind in ("b", "u", "s", "f", "bf") for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True)
class Instruction:
    """`@guard opcode operands` at a place of the program; the guard is a register's name and whether it is negated."""

    guard: tuple[str, bool] | None
    opcode: str
    operands: tuple[str, ...]
    place: int

    @property
    def parts(self) -> list[str]:
        return self.opcode.split(".")

    def __str__(self) -> str:
        guard = f"@{'!' * self.guard[1]}{self.guard[0]} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}"


@dataclass(frozen=True)
class Variable:
    """A variable with an address: its state space, size and alignment in bytes, first bytes of a constant one."""

    space: str
    size: int
    align: int
    data: bytes | None = None


@dataclass
class Function:
    """`first` is the place of its first instruction; None of a function that is only declared."""

    name: str
    parameters: list[str]
    results: list[str]
    first: int | None = None


@dataclass
class Program:
    """A module with one entry. `parameters` are the entry's names with their sizes in bytes, in order."""

    parameters: dict[str, int] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    start: int = 0
    most_threads: int | None = None
    accumulators: set[str] = field(default_factory=set)


DIRECTIVES = re.compile(r"^\s*\.(version|target|address_size|file|section)\b[^\n]*", re.MULTILINE)
DELIMITER = re.compile(r"[{};]|(?<![\w$%.])([A-Za-z_$][\w$]*)\s*:(?!:)")
NAME = re.compile(r"(?<![\w$%.])[%$A-Za-z_][\w$]*")  # of %tid.x only %tid
DECLARED = re.compile(
    r"(?:\.(?:visible|extern|weak|common)\s+)*\.(shared|global|const|local|param)"
    r"(?:\s+\.align\s+(\d+))?\s+\.(\w+)\s+([\w$%]+)\s*(\[\s*\d*\s*\])?(?:\s*=\s*\{(.*)\})?$",
    re.DOTALL,
)


def parse(ptx: str) -> Program:
    """The program of a PTX module with one entry."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.DOTALL)
    text = DIRECTIVES.sub("", text)
    entries = re.findall(r"\.entry\s+([\w$]+)", text)
    if len(entries) != 1:
        raise ValueError(f"one entry is run, the module has {entries or 'none'}")
    return Parser(text.replace(entries[0], "entry")).program


class Parser:
    """Walks over the text from delimiter to delimiter; `scopes` map names as they are written to unique ones."""

    def __init__(self, text: str):
        self.program, self.scopes, self.made, self.function = Program(), [{}], 0, None
        self.branches = []  # instruction, label, scopes
        start = begin = 0
        while match := DELIMITER.search(text, start):
            start, mark = match.end(), match[0]
            before = text[begin : match.start()].strip()
            if mark in "{}" and before and not re.search(r"\.(entry|func)\b", before):
                continue  # braces of an operand or of a constant
            begin = start
            if mark == "{":
                self.scopes.append({})
                if before:
                    self.header(before)
            elif mark == "}":
                self.scopes.pop()
                if len(self.scopes) == 1:
                    self.function = None
            elif mark == ";":
                self.statement(before)
            else:
                self.label(match[1])
        self.resolve()

    def unique(self, name: str) -> str:
        """A name for what is declared in the present scope."""
        self.made += 1
        self.scopes[-1][name] = made = f"{name}'{self.made}" if len(self.scopes) > 2 or self.function else name
        return made

    def renamed(self, text: str) -> str:
        def known(match):
            for scope in reversed(self.scopes):
                if match[0] in scope:
                    return scope[match[0]]
            return match[0]

        return NAME.sub(known, text)

    def header(self, text: str) -> None:
        """`.entry name (parameters) directives` or `.func (results) name (parameters)` before a body."""
        kind, results, name, parameters, rest = re.search(
            r"\.(entry|func)\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\(([^)]*)\))?(.*)$", text, re.DOTALL
        ).groups()
        listed = [self.parameter(each, kind) for each in (parameters or "").split(",") if each.strip()]
        if kind == "entry":
            self.program.parameters, self.program.start = dict(listed), len(self.program.instructions)
            if most := re.search(r"\.(?:max|req)ntid\s+([\d\s,]+)", rest):
                sizes = [int(size) for size in most[1].replace(",", " ").split()]
                self.program.most_threads = sizes[0] * sizes[1] * sizes[2] if len(sizes) == 3 else sizes[0]
        else:
            given = [self.parameter(each, kind)[0] for each in (results or "").split(",") if each.strip()]
            self.function = Function(name, [each[0] for each in listed], given, len(self.program.instructions))
            self.program.functions[name] = self.function

    def parameter(self, text: str, kind: str) -> tuple[str, int]:
        size_type, name, count = re.search(r"\.(\w+)\s+([\w$%]+)\s*(?:\[\s*(\d+)\s*\])?\s*$", text).groups()
        size = SIZES[size_type] * int(count or 1)
        if kind == "func":
            name = self.unique(name)
            self.program.variables[name] = Variable("param", size, 8)
        return name, size

    def label(self, name: str) -> None:
        self.program.labels[self.unique(name)] = len(self.program.instructions)

    def statement(self, text: str) -> None:
        if match := re.match(r"\.reg\s+\.(\w+)\s+(.*)", text, re.DOTALL):
            for name in match[2].split(","):
                if ranged := re.fullmatch(r"\s*([\w$%]+)<(\d+)>\s*", name):
                    names = [f"{ranged[1]}{i}" for i in range(int(ranged[2]))]
                else:
                    names = [name.strip()]
                for each in names:
                    self.program.registers[self.unique(each)] = match[1]
        elif match := DECLARED.match(text):
            space, align, kind, name, count, data = match.groups()
            size = SIZES[kind] * (int(count.strip("[] ") or 0) if count else 1)
            content = self.constant(data, SIZES[kind], size) if data else None
            self.program.variables[self.unique(name)] = Variable(space, size, int(align or SIZES[kind]), content)
        elif text and not text.startswith("."):
            self.instruction(text)

    @staticmethod
    def constant(data: str, size: int, total: int) -> bytes:
        values = [int(value, 0) % (1 << 8 * size) for value in data.split(",")]
        return b"".join(value.to_bytes(size, "little") for value in values).ljust(total, b"\0")

    def instruction(self, text: str) -> None:
        guard = None
        if match := re.match(r"@(!?)\s*([\w$%]+)\s+(.*)", text, re.DOTALL):
            guard, text = (self.renamed(match[2]), match[1] == "!"), match[3]
        opcode, rest = re.match(r"([\w.:]+)\s*(.*)", text, re.DOTALL).groups()
        operands = [self.renamed(operand) for operand in split(rest)]
        made = Instruction(guard, opcode, tuple(operands), len(self.program.instructions))
        if opcode.startswith("bra"):
            self.branches.append((made, split(rest)[0], list(self.scopes)))
        self.program.instructions.append(made)

    def resolve(self) -> None:
        """Branches, now that all labels are known: to the innermost of their name."""
        for branch, name, scopes in self.branches:
            label = next(scope[name] for scope in reversed(scopes) if name in scope)
            self.program.instructions[branch.place] = replace(branch, operands=(label,))


def split(text: str) -> list[str]:
    """Operands at the commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(text):
        if letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts
