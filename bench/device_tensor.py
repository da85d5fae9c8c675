"""Products by tensor cores on a card beside torch: values against float64, bits of kernels against each other, times.

    python bench/device_tensor.py --build DIR [GROUP ...]     compiles the groups' kernels, on a machine without a GPU
    python bench/device_tensor.py --cubins DIR [GROUP ...]    runs them, with torch and the driver alone: each group in
                                                              a process of `--seconds`, one JSON line a measurement

Operands are random. A value may be off by 2**-8 (bfloat16), 2**-11 (float16) or 2**-23 of itself, for the store, and by
k/8 * 2**-22 of |A| |B|, for sums that are cut after 24 bits; tfloat32 adds 2**-10 of |A| |B|. Whole numbers are exact.
Times are medians of seven turns, in which all kernels of a product take part, of CUDA graphs that walk through operands
of at least 100 MB.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

SIZE = {"bfloat16": 2, "float16": 2, "float32": 4, "int8": 1, "uint8": 1, "int32": 4}
LIMIT = 4096


@dataclass(frozen=True)
class Case:
    """C = alpha A B + beta X of m x k by k x n, `items` of them, by several kernels.

    layout: "n" row-major or "t" column-major, of A and of B. A tile is (bm, bn, stages), and where it is not
    by "rows", how C is stored: by "columns", of C' = B' A', or "any", element by element.
    """

    dtype: str
    m: int
    n: int
    k: int
    layout: str
    tiles: tuple
    out: str = ""
    items: int = 1
    alpha: float = 1
    beta: float = 0
    timed: bool = True

    def __str__(self):
        items = f"{self.items} of " * (self.items > 1)
        return f"{self.dtype} {items}{self.m}x{self.n}x{self.k} {self.layout}{' ' + self.out if self.out else ''}"

    @property
    def stored(self) -> str:
        return self.out or {"int8": "int32", "uint8": "int32"}.get(self.dtype, self.dtype)

    def kernel(self, tile) -> tuple:
        """All that the kernel's machine code depends on."""
        bm, bn, stages, *c = tile
        c = c[0] if c else "rows"
        sides = ["k" if self.layout[0] == "n" else "l", "k" if self.layout[1] == "t" else "l"]
        a, b = reversed(sides) if c == "columns" else sides
        role = "long" if self.k > LIMIT and self.stored != "int32" else "whole"
        return self.dtype, self.stored, bm, bn, stages, a, b, c, role


BIG = (128, 256, 4)


def squares(dtype: str, sizes, layouts, tiles=(BIG,), out: str = "") -> list[Case]:
    return [Case(dtype, n, n, n, layout, tiles, out) for n in sizes for layout in layouts]


COLUMNS = {n: (64, n, stages, "columns") for n, stages in ((16, 21), (32, 17), (64, 13), (80, 11), (128, 8))}
FEW = {
    8: (COLUMNS[16],), 16: (COLUMNS[16],), 32: (COLUMNS[16], COLUMNS[32]), 64: (COLUMNS[32], COLUMNS[64]),
    128: (COLUMNS[64], (64, 64, 13), COLUMNS[128]), 256: (COLUMNS[128], (64, 128, 8)),
    512: ((128, 128, 6), (128, 128, 6, "columns")), 1024: (BIG,),
}  # fmt: skip
SMALL = {
    256: (COLUMNS[16], COLUMNS[32]), 512: (COLUMNS[32], (64, 64, 13)), 768: (COLUMNS[80], (64, 128, 8)),
    1024: ((64, 128, 8), COLUMNS[128]), 1536: ((128, 192, 4), (128, 144, 5, "columns")), 2048: (BIG,),
}  # fmt: skip
ANY = ((*BIG, "any"), (64, 64, 3, "any"))
ODD = (BIG, (64, 64, 3, "columns"))
GROUPS = {
    "right": [
        *(Case("bfloat16", 304, 520, 200, layout, ODD, timed=False) for layout in ("nt", "nn", "tn", "tt")),
        Case("float16", 136, 264, 4096 + 72, "nn", ODD, items=3, alpha=0.5, timed=False),
        Case("float16", 136, 264, 200, "nn", ANY, items=3, alpha=0.5, beta=2, timed=False),
        Case("bfloat16", 1000, 248, 1000, "nt", (BIG, (64, 64, 3)), "float32", timed=False),
        Case("int8", 1000, 520, 992, "nt", ((128, 256, 4), (64, 64, 3)), timed=False),
        Case("uint8", 72, 520, 8192, "nt", ((128, 256, 4), (64, 64, 3)), timed=False),
        Case("float32", 1000, 520, 1000, "nt", ((128, 256, 4), (64, 64, 3)), timed=False),
    ],
    "bf16": squares("bfloat16", (4096, 8192, 2048), ("nt", "nn")),
    "f16": squares("float16", (4096, 8192), ("nt", "nn")),
    "turned": squares("bfloat16", (4096, 8192), ("tn", "tt"), (BIG,)),
    "int8": squares("int8", (4096, 8192), ("nt",)),
    "tf32": squares("float32", (4096, 8192), ("nt",)),
    "few": [Case("bfloat16", m, 4096, 4096, layout, tiles) for m, tiles in FEW.items() for layout in ("nt", "nn")],
    "small": [Case("bfloat16", n, n, n, layout, tiles) for n, tiles in SMALL.items() for layout in ("nt", "nn")],
    "batch": [Case("bfloat16", 512, 512, 512, "nn", (BIG, (128, 128, 5)), items=64)],
}


def name(kernel: tuple) -> str:
    return "-".join(map(str, kernel))


def build(folder: Path, groups, jobs: int) -> None:
    """Compile the kernels of the groups, in parallel processes; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    kernels = dict.fromkeys(case.kernel(tile) for group in groups for case in GROUPS[group] for tile in case.tiles)
    wanted = [(folder, kernel) for kernel in kernels if not (folder / f"{name(kernel)}.json").exists()]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for line in pool.imap_unordered(compiled, wanted):
            print(line, flush=True)


def compiled(wanted) -> str:
    from nbkernels.cuda.assemble import assemble
    from nbkernels.cuda.product.config import GemmConfig
    from nbkernels.cuda.product.tensormap import Form
    from nbkernels.cuda.product.tensormap import kernel as kernel_of
    from nbkernels.jit.ir.kind import Kind

    folder, kernel = wanted
    start = time.perf_counter()
    dtype, out, bm, bn, stages, *form = kernel
    chain = "int32" if out == "int32" else "float32"
    kind = Kind(dtype, dtype, chain, out, *["mul"] * (chain == "int32"))
    made = kernel_of(Form(GemmConfig("W", bm, bn, 128 // SIZE[dtype], stages, bm // 16), kind, *form))
    machine = assemble(made, (9, 0))
    (folder / f"{name(kernel)}.cubin").write_bytes(machine.cubin)
    facts = {
        "entry": machine.entry,
        "threads": made.threads,
        "shared": made.shared,
        "resources": str(machine.resources),
    }
    (folder / f"{name(kernel)}.json").write_text(json.dumps(facts))
    return f"{name(kernel)}: {machine.resources}, {time.perf_counter() - start:.0f} s"


class Driver:
    """What is asked of libcuda, by ctypes; torch has made the context."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __call__(self, function: str, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'?').decode()}")

    def load(self, cubin: bytes, entry: str, shared: int):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), cubin)
        self("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        if shared:
            self("cuFuncSetAttribute", function, 8, shared)
        return function

    def tensor_map(self, address: int, dims, strides, box, dtype: str) -> bytes:
        kinds = {"int8": 0, "uint8": 0, "int32": 3, "float16": 6, "float32": 7, "bfloat16": 9, "tfloat32": 11}
        memory = (ctypes.c_uint8 * 192)()
        skipped = -ctypes.addressof(memory) % 64
        long, short, count = ctypes.c_uint64, ctypes.c_uint32, len(dims)
        self(
            "cuTensorMapEncodeTiled", ctypes.c_void_p(ctypes.addressof(memory) + skipped), kinds[dtype], short(count),
            ctypes.c_void_p(address), (long * count)(*dims), (long * (count - 1))(*strides), (short * count)(*box),
            (short * count)(*[1] * count), 0, 3, 3, 0,
        )  # fmt: skip
        return bytes(memory[skipped : skipped + 128])


class Parameters:
    """Arguments of a launch in memory, and the table of their addresses."""

    def __init__(self, arguments):
        data = [x if isinstance(x, bytes) else bytes(x) for x in arguments]
        self.memory = (ctypes.c_uint8 * (sum(-len(x) % 64 + len(x) for x in data) + 64))()
        at = ctypes.addressof(self.memory)
        at += -at % 64
        places = []
        for each in data:
            ctypes.memmove(at, each, len(each))
            places.append(at)
            at += len(each) + -len(each) % 64
        self.table = (ctypes.c_void_p * len(places))(*places)


class Card:
    """Kernels from a folder of cubins, launched on torch's tensors."""

    def __init__(self, folder: Path):
        import torch

        self.torch, self.folder, self.driver, self.loaded = torch, folder, Driver(), {}
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def function(self, kernel: tuple):
        if kernel not in self.loaded:
            facts = json.loads((self.folder / f"{name(kernel)}.json").read_text())
            cubin = (self.folder / f"{name(kernel)}.cubin").read_bytes()
            self.loaded[kernel] = self.driver.load(cubin, facts["entry"], facts["shared"]), facts
        return self.loaded[kernel]

    def launcher(self, case: Case, tile, a, b, c, x):
        """launch(): the kernel of a tile on operands in memory (items x lines x contiguous dimension), prepared."""
        kernel = case.kernel(tile)
        (function, facts), (_, _, bm, bn, _, along_a, along_b, store, role) = self.function(kernel), kernel
        (m, left), (n, right) = (case.m, a), (case.n, b)
        if store == "columns":
            (m, left), (n, right) = (n, right), (m, left)
        depth, wide, dtype = 128 // SIZE[case.dtype], 128 // SIZE[case.stored], case.dtype
        dtype = "tfloat32" if dtype == "float32" else dtype

        def mapped(x, box, dtype):
            strides = [x.stride(1) * x.element_size(), x.stride(0) * x.element_size()]
            return self.driver.tensor_map(x.data_ptr(), [x.shape[2], x.shape[1], x.shape[0]], strides, box, dtype)

        rows = min(64, bn & -bn) if store == "columns" else 16
        maps = (
            mapped(left, (depth, bm, 1) if along_a == "k" else (64, depth, 1), dtype),
            mapped(right, (depth, bn, 1) if along_b == "k" else (64, depth, 1), dtype),
            mapped(c, (wide, rows, 1), case.stored),
        )
        tiles = -(-m // bm) * -(-n // bn) * case.items
        each = max(1, min((227 << 10) // (facts["shared"] + 1024), 2048 // facts["threads"]))
        grid = min(tiles, self.multiprocessors * each)
        work = self.torch.empty(grid * bm * bn if role == "long" else 1, device="cuda")
        word = ctypes.c_int32 if case.stored == "int32" else ctypes.c_float
        beta, alpha = (word((int if word is ctypes.c_int32 else float)(x)) for x in (case.beta, case.alpha))
        sizes = m, n, case.k, case.items, int(left.shape[0] > 1), int(right.shape[0] > 1), int(case.beta != 0)
        matrices = [(y.data_ptr(), y.stride(1), y.stride(2), y.stride(0)) for y in (c, x)]
        numbers = [ctypes.c_int64(x) for x in itertools.chain(sizes, *matrices)]
        given = Parameters([*maps, *numbers, beta, alpha, ctypes.c_int64(work.data_ptr())])

        def launch(kept=(work, left, right, c, x)):
            stream = self.torch.cuda.current_stream().cuda_stream
            self.driver("cuLaunchKernel", function, grid, 1, 1, facts["threads"], 1, 1, facts["shared"],
                        ctypes.c_void_p(stream), given.table, None)  # fmt: skip

        return launch


def operands(card: Card, case: Case):
    """(A, B, C, X) as stored: items x lines x contiguous dimension."""
    torch, dtype = card.torch, getattr(card.torch, case.dtype)
    shapes = [(m, k) if "nt"[side] == case.layout[side] else (k, m)
              for side, (m, k) in enumerate(((case.m, case.k), (case.n, case.k)))]  # fmt: skip

    def random(shape):
        if dtype in (torch.int8, torch.uint8):
            return torch.randint(-128 * (dtype == torch.int8), 128, (case.items, *shape), device="cuda", dtype=dtype)
        return torch.randn(case.items, *shape, device="cuda").to(dtype)

    c = torch.empty(case.items, case.m, case.n, device="cuda", dtype=getattr(torch, case.stored))
    x = torch.randn(1, case.m, case.n, device="cuda").to(c.dtype).expand(case.items, -1, -1) if case.beta else c
    return random(shapes[0]), random(shapes[1]), c, x


def matrices(case: Case, a, b):
    """A and B as torch multiplies them."""
    return (a if case.layout[0] == "n" else a.mT), (b if case.layout[1] == "n" else b.mT)


def torch_product(card: Card, case: Case):
    """multiply(a, b, out) of torch, or None where it has none."""
    torch = card.torch
    if case.dtype == "int8":
        return lambda a, b, c: torch._int_mm(a[0], b[0], out=c[0])
    if case.stored != case.dtype:
        return None
    torch.set_float32_matmul_precision("high")
    if case.items > 1:
        return lambda a, b, c: torch.bmm(a, b, out=c)
    return lambda a, b, c: torch.mm(a[0], b[0], out=c[0])


def worst(card: Card, case: Case, a, b, c, added) -> float:
    """The largest error in units of the bound; of whole numbers, how many are wrong."""
    torch = card.torch
    a, b = matrices(case, a, b)
    wrong = 0.0
    for i, first in itertools.product(range(case.items), range(0, case.m, 1024)):
        x, y, found = a[i, first : first + 1024].double(), b[i].double(), c[i, first : first + 1024].double()
        right = case.alpha * (x @ y)
        if case.beta:
            right += case.beta * added[i, first : first + 1024].double()
        if case.stored == "int32":
            wrong += int((found != right).sum())
            continue
        store = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(case.stored, 2.0**-23)
        entry = 2.0**-10 if case.dtype == "float32" else 0
        bound = store * right.abs() + (case.k / 8 * 2.0**-22 + entry) * case.alpha * (x.abs() @ y.abs())
        ratio = ((found - right).abs() / bound.clamp_min(1e-30)).nan_to_num(torch.inf).max()
        wrong = max(wrong, float(ratio))
    return wrong


def median(values):
    return sorted(values)[len(values) // 2]


def run(card: Card, case: Case, note) -> None:
    torch = card.torch
    torch.manual_seed(1)
    a, b, c, x = operands(card, case)
    first = None
    for tile in case.tiles:
        c.view(torch.uint8).fill_(0xFF if case.stored != "int32" else 0x7F)
        card.launcher(case, tile, a, b, c, x)()
        torch.cuda.synchronize()
        first = c.clone() if first is None else first
        same = bool(torch.equal(c.view(torch.uint8), first.view(torch.uint8)))
        found = worst(card, case, a, b, c, x)
        right = found <= (0 if case.stored == "int32" else 1)
        note(what="values", case=str(case), kernel=tile, worst=found, right=right, same=same)
    peer = torch_product(card, case)
    if not case.timed:
        return
    each = sum(x.numel() * x.element_size() for x in (a, b, c))
    sets = [(a, b, c, x), *(operands(card, case) for _ in range(min(23, 100_000_000 // each)))]
    launches = max(len(sets), min(40, int(4e12 // (2 * case.m * case.n * case.k * case.items))))
    contenders = {str(tile): [card.launcher(case, tile, *x) for x in sets] for tile in case.tiles}
    if peer:
        contenders["torch"] = [lambda x=x: peer(*matrices(case, x[0], x[1]), x[2]) for x in sets]
    graphs, times = {}, {key: [] for key in contenders}
    for key, calls in contenders.items():
        calls[0]()
        torch.cuda.synchronize()
        graphs[key] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[key]):
            for i in range(launches):
                calls[i % len(calls)]()
    for turn in range(8):
        for key in list(graphs)[:: 1 if turn % 2 else -1]:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[key].replay()
            end.record()
            torch.cuda.synchronize()
            if turn:  # the first warms up
                times[key].append(start.elapsed_time(end) / launches * 1e3)
    us = {key: round(median(each), 2) for key, each in times.items()}
    flops = 2e-6 * case.m * case.n * case.k * case.items
    note(what="times", case=str(case), us=us, tflops={key: round(flops / x, 1) for key, x in us.items()},
         x={key: round(us["torch"] / x, 3) for key, x in us.items() if "torch" in us and key != "torch"})  # fmt: skip


def group(folder: Path, group: str) -> None:
    def note(**facts):
        print(json.dumps({"group": group, **facts}), flush=True)

    card = Card(folder)
    note(what="card", device=card.torch.cuda.get_device_name(), torch=card.torch.__version__)
    for case in GROUPS[group]:
        try:
            run(card, case, note)
        except Exception as error:
            note(what="error", case=asdict(case), error=f"{type(error).__name__}: {error}"[:600])
            if "CUDA" in str(error) and "launch" in str(error).lower():
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("groups", nargs="*", default=[])
    parser.add_argument("--build", type=Path)
    parser.add_argument("--cubins", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--alone", action="store_true", help="run one group in this process")
    given = parser.parse_args()
    groups = given.groups or list(GROUPS)
    if given.build:
        build(given.build, groups, given.jobs)
    elif given.alone:
        group(given.cubins, groups[0])
    else:
        for each in groups:
            command = [sys.executable, __file__, "--cubins", str(given.cubins), "--alone", each]
            try:
                status = subprocess.run(command, timeout=given.seconds, env=os.environ).returncode
            except subprocess.TimeoutExpired:
                status = f"stopped after {given.seconds} s"
            if status:
                print(json.dumps({"group": each, "what": "ended", "status": status}), flush=True)


if __name__ == "__main__":
    main()
