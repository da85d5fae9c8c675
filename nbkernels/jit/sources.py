"""What the library's sources mean, as a hash: of their code, not of their comments, docstrings and blank lines.

Syntax trees would say it, but to parse all sources takes 0.7 s, and this is asked for at a process's first call. One
regular expression reads them in 8 to 14 ms (2026-11), as strings and comments are all that it must tell apart. A
change of layout within a statement counts as one of meaning.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
# What compiled code is made from: the rooms that compile, with their sub-folders, and what they take from outside.
ROOMS = "jit", "cpu", "cuda", "scalar", "elementary"
MODULES = "dtypes.py", "problem.py", "strides.py"

COMMENT = ord("#")

_LITERALS = re.compile(
    rb'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    rb"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    rb'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    rb"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    rb"|\#[^\n]*",
    re.DOTALL,
)
# What stands before a docstring: comments alone, or the line before, which ends in a colon.
_OPENING = re.compile(rb"(?:[ \t]*(?:#.*)?\n)*[rR]?")
_HEADER = re.compile(rb"[ \t]*(?:def |async def |class |\)).*:[ \t]*(?:#.*)?\n[ \t]*[rR]?")


def files() -> list[Path]:
    """Every source that counts, in order."""
    rooms = (file for room in ROOMS for file in (PACKAGE / room).rglob("*.py"))
    return sorted([*rooms, *(PACKAGE / name for name in MODULES)])


def digest() -> str:
    """Hash of the meaning of them all, each under its name."""
    whole = hashlib.sha256()
    for file in files():
        name, code = file.relative_to(PACKAGE).as_posix(), meaning(file.read_bytes())
        whole.update(f"{name} {len(code)}\n".encode() + code)
    return whole.hexdigest()


def meaning(source: bytes) -> bytes:
    """The source without what changes no code. A docstring in another form than three double quotes that stand alone
    on their lines, right below the line that ends in a colon, stays: what is kept needlessly costs a compilation, what
    goes wrongly would load the wrong code."""
    source = source.replace(b"\r\n", b"\n")

    def kept(match):
        text = match[0]
        if text[0] == COMMENT or (text[:3] == b'"""' and _documents(source, *match.span())):
            return b""
        return text.replace(b"\n", b"\0") if b"\n" in text else text  # lines of a string are no lines of code

    lines = _LITERALS.sub(kept, source).split(b"\n")
    return b"\n".join([line for line in map(bytes.rstrip, lines) if line])


def _documents(source, start, end):
    """Whether the string from start to end is a docstring."""
    if source[end : end + 1] not in (b"\n", b""):
        return False
    line = source.rfind(b"\n", 0, start)
    header = line >= 0 and _HEADER.fullmatch(source, source.rfind(b"\n", 0, line) + 1, start)
    return bool(header or _OPENING.fullmatch(source, 0, start))
