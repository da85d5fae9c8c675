"""Moves, comparisons, conversions, loads and stores."""

from __future__ import annotations

import numpy as np

from .instructions import instruction
from .operands import END, LOCAL, PARAM, RAW, SHARED, TYPES
from .real import flushed, narrowed, packed16, unit, unpacked

COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal}  # fmt: skip
COMPARE |= {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}


@instruction("mov")
def mov(each, operands):
    """Also of words into their parts, and back: the lowest part comes first."""
    target, source = each.operands
    kind = each.parts[-1]
    if not target.startswith("{") and not source.startswith("{"):
        put, x = operands.write(target), operands.read(source, kind)
        return lambda threads, lanes: put(threads, lanes, x(threads, lanes))
    if target.startswith("{"):
        tokens, x = operands.vector(target), operands.read(source, kind)
        puts, part = [operands.write(token) for token in tokens], RAW[TYPES[kind].itemsize // len(tokens)]

        def split(threads, lanes):
            parts = np.ascontiguousarray(threads.each(x(threads, lanes), lanes)).view(part).reshape(-1, len(puts)).T
            for put, values in zip(puts, parts.copy()):
                put(threads, lanes, values)

        return split
    tokens, put = operands.vector(source), operands.write(target)
    size = 8 * TYPES[kind].itemsize // len(tokens)
    parts = [operands.read(token, f"b{size}") for token in tokens]
    return lambda threads, lanes: put(
        threads, lanes, np.stack([threads.each(x(threads, lanes), lanes) for x in parts], 1).view(TYPES[kind]).ravel()
    )


def comparison(name: str, dtype):
    """The test that a name stands for; of floats, those that end in u hold for NaN, too."""
    if name in ("num", "nan"):
        return lambda x, y: (np.isnan(x) | np.isnan(y)) == (name == "nan")
    if name in COMPARE and dtype.kind != "f":
        return COMPARE[name]
    if name == "ne":  # ordered: false for NaN
        return lambda x, y: (x < y) | (x > y)
    if name in COMPARE:
        return COMPARE[name]
    test = COMPARE[name[:-1]]
    return lambda x, y: test(x, y) | np.isnan(x) | np.isnan(y)


def compared(each, operands):
    """(test of two operands, combined with a third where the opcode says how)"""
    parts, kind = each.parts, each.parts[-1]
    half = kind in ("f16", "bf16")
    dtype = TYPES["f32"] if half else TYPES[kind]
    test = comparison(parts[1], dtype)
    x, y = (operands.read(token, "b16" if half else kind) for token in each.operands[1:3])
    number = (lambda values: unpacked(np.ascontiguousarray(values), kind)) if half else lambda values: values
    logic = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.get(parts[2])
    more = operands.read(each.operands[3], "pred") if logic else None

    def run(threads, lanes):
        found = test(number(x(threads, lanes)), number(y(threads, lanes)))
        return (found, None) if more is None else (found, more(threads, lanes))

    return run, logic or (lambda found, more: found)


@instruction("setp")
def setp(each, operands):
    run, combine = compared(each, operands)
    tokens = each.operands[0].split("|")
    puts = [operands.write(token.strip()) for token in tokens]

    def compare(threads, lanes):
        found, more = run(threads, lanes)
        puts[0](threads, lanes, combine(found, more))
        if len(puts) == 2:
            puts[1](threads, lanes, combine(~found, more))

    return compare


@instruction("set")
def set_(each, operands):
    """All ones, or 1.0, where the comparison holds."""
    run, combine = compared(each, operands)
    into = each.parts[-2]
    put, dtype = operands.write(each.operands[0]), TYPES[into]
    yes = dtype.type(1) if dtype.kind == "f" else np.array(-1).astype(dtype)
    return lambda threads, lanes: put(threads, lanes, np.where(combine(*run(threads, lanes)), yes, dtype.type(0)))


@instruction("selp")
def selp(each, operands):
    put, kind = (
        operands.write(each.operands[0]),
        each.parts[-1].replace("f", "b") if each.parts[-1] != "pred" else "pred",
    )
    x, y = (operands.read(token, kind) for token in each.operands[1:3])
    chosen = operands.read(each.operands[3], "pred")
    return lambda threads, lanes: put(
        threads, lanes, np.where(chosen(threads, lanes), x(threads, lanes), y(threads, lanes))
    )


@instruction("cvt")
def cvt(each, operands):
    """Of numbers, rounded as the opcode says; whole numbers wrap, or saturate from a float."""
    into, kind = each.parts[-2:]
    put = operands.write(each.operands[0])
    if into in ("f16x2", "bf16x2"):
        upper, lower = (operands.read(token, "f32") for token in each.operands[1:3])
        relu = "relu" in each.parts

        def pack(threads, lanes):
            both = [threads.each(x(threads, lanes), lanes) for x in (lower, upper)]
            both = [np.where(x < 0, np.float32(0), x) for x in both] if relu else both
            put(threads, lanes, np.stack([packed16(x, into) for x in both], 1).view(np.uint32).ravel())

        return pack
    x = operands.read(each.operands[1], {"f16": "b16", "bf16": "b16", "tf32": "b32"}.get(kind, kind))
    change = conversion(into, kind, each.parts)
    return lambda threads, lanes: put(threads, lanes, change(x(threads, lanes)))


def conversion(into: str, kind: str, parts):
    half = lambda name: name in ("f16", "bf16")  # noqa: E731
    if into == "tf32":  # to the nearest, ties away from zero
        return lambda x: x.view(np.uint32) + np.uint32(0x1000) & np.uint32(0xFFFFE000)
    whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
    rounding = next((function for name, function in whole.items() if name in parts), None)
    source = (lambda x: unpacked(np.ascontiguousarray(x), kind)) if half(kind) else lambda x: x
    to_float, from_float = into[0] == "f" or half(into), kind[0] == "f" or half(kind)
    if from_float and not to_float:
        return lambda x: saturated((rounding or np.trunc)(source(x)), TYPES[into])
    if not to_float:
        if "sat" in parts:
            limits = np.iinfo(TYPES[into])
            return lambda x: np.clip(
                x, max(limits.min, np.iinfo(x.dtype).min), min(limits.max, np.iinfo(x.dtype).max)
            ).astype(TYPES[into])
        return lambda x: x.astype(TYPES[into])
    mode = next((m for m in ("rz", "rm", "rp") if m in parts), "rn")

    def change(x):
        x = source(x)
        x = rounding(x) if rounding else x
        x = flushed(x) if "ftz" in parts and x.dtype == np.float32 else x
        if half(into):
            if mode != "rn":
                raise NotImplementedError(".".join(parts))
            return packed16(x if x.dtype in (np.float32, np.float64) else x.astype(np.float64), into)
        if mode != "rn" and into == "f32":
            return narrowed(x.astype(np.float64), mode)
        x = x.astype(TYPES[into])
        return unit(x) if "sat" in parts else x

    return change


def saturated(x, dtype):
    """A whole float in an integer type: the nearest that there is, 0 of NaN."""
    limits = np.iinfo(dtype)
    inside = (x > float(limits.min) - 0.5) & (x < float(limits.max) + (0.5 if limits.bits < 33 else 0))
    result = np.where(inside, x, 0).astype(dtype)
    result = np.where(~inside & (x < 0), dtype.type(limits.min), result)
    return np.where(~inside & (x > 0), dtype.type(limits.max), result)


@instruction("cvta")
def cvta(each, operands):
    """Addresses of a state space to generic ones, and back."""
    put, x = operands.write(each.operands[0]), operands.read(each.operands[1], each.parts[-1])
    start = {"shared": SHARED, "local": LOCAL}.get(next(p for p in each.parts[1:] if p != "to").split("::")[0], 0)
    moved = -start if "to" in each.parts else start
    return lambda threads, lanes: put(threads, lanes, (x(threads, lanes).astype(np.int64) + moved).astype(np.uint64))


@instruction("isspacep")
def isspacep(each, operands):
    put, x, space = operands.write(each.operands[0]), operands.read(each.operands[1], "u64"), each.parts[1]
    bounds = {"shared": (SHARED, LOCAL), "local": (LOCAL, PARAM), "global": (0, SHARED), "const": (0, 0)}
    low, high = bounds[space.split("::")[0]]
    return lambda threads, lanes: put(threads, lanes, (x(threads, lanes) >= low) & (x(threads, lanes) < high))


SPACES = ("global", "shared", "local", "param", "const")


def space_of(each) -> str | None:
    return next((part.split("::")[0] for part in each.parts if part.split("::")[0] in SPACES), None)


@instruction("ld", "ldu")
def ld(each, operands):
    kind, space = each.parts[-1], space_of(each)
    puts, dtype = [operands.write(token) for token in operands.vector(each.operands[0])], TYPES[kind]
    name = each.operands[1].strip("[] ").split("+")[0].strip()
    if space == "param" and name in operands.parameters:
        return parameter(puts, operands.parameters[name], each.operands[1], dtype)
    address = operands.address(each.operands[1])

    def run(threads, lanes):
        values = load(threads, lanes, space, address(threads, lanes), dtype.itemsize, len(puts))
        for put, value in zip(puts, values):
            put(threads, lanes, value.view(dtype))

    return run


def parameter(puts, start: int, token: str, dtype):
    """Of the kernel's parameters, the same for all threads."""
    start += int(token.strip("[] ").split("+")[1]) if "+" in token else 0

    def run(threads, lanes):
        for i, put in enumerate(puts):
            place = start + i * dtype.itemsize
            put(threads, lanes, threads.launch.constants[place : place + dtype.itemsize].view(dtype))

    return run


def load(threads, lanes, space, addresses, size: int, count: int) -> list[np.ndarray]:
    """`count` words of `size` bytes at each address, in a state space or at generic addresses."""
    if space is None:
        space, addresses = generic(addresses)
        if space is None:
            parts = [load(threads, threads.index(lanes)[some], None, addresses[some], size, count)
                     for some in (addresses < SHARED, addresses >= SHARED)]  # fmt: skip
            return [np.where(addresses < SHARED, *(spread(addresses < SHARED, a, b))) for a, b in zip(*parts)]
    if space in ("global", "const"):
        return threads.memory.load(addresses, size, count)
    if space == "shared":
        return threads.shared.load(threads, lanes, addresses, size, count)
    at = addresses[:, None] + np.arange(size * count)
    raw = threads.local[threads.index(lanes)[:, None], at].view(RAW[size])
    return list(raw.T.copy())


def spread(first, a, b):
    """Values of the lanes where `first` holds and of the others, each at its lane."""
    both = [np.zeros(len(first), a.dtype) for _ in range(2)]
    both[0][first], both[1][~first] = a, b
    return both


def generic(addresses):
    """(the one state space of generic addresses or None, addresses in it)"""
    for space, low, high in (("global", 0, SHARED), ("shared", SHARED, LOCAL), ("local", LOCAL, PARAM),
                             ("param", PARAM, END)):  # fmt: skip
        if ((addresses >= low) & (addresses < high)).all():
            return space, addresses - low
    return None, addresses


@instruction("st")
def st(each, operands):
    kind, space = each.parts[-1], space_of(each)
    kind = kind if kind[0] != "f" else f"b{kind[1:]}"
    inputs = [operands.read(token, kind) for token in operands.vector(each.operands[1])]
    address, raw = operands.address(each.operands[0]), RAW[TYPES[kind].itemsize]

    def run(threads, lanes):
        values = [threads.each(x(threads, lanes).view(raw), lanes) for x in inputs]
        store(threads, lanes, space, address(threads, lanes), raw.itemsize, values)

    return run


def store(threads, lanes, space, addresses, size: int, values) -> None:
    if space is None:
        space, addresses = generic(addresses)
        if space is None:
            for some in (addresses < SHARED, addresses >= SHARED):
                store(threads, threads.index(lanes)[some], None, addresses[some], size, [v[some] for v in values])
            return
    if space == "global":
        threads.memory.store(addresses, size, values)
    elif space == "shared":
        threads.shared.store(threads, lanes, addresses, size, values)
    else:
        at = addresses[:, None] + np.arange(size * len(values))
        threads.local[threads.index(lanes)[:, None], at] = np.stack(values, 1).view(np.uint8).reshape(len(at), -1)
