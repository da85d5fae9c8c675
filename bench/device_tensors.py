"""Stage: products by tensor cores through the public functions: values within the stated bound, wgmma's bits against
mma.sync's, times beside torch in turns. device_tensor.py runs single tiles without the library.
"""

import functools

import device_arrays
from device_cases import dtype_of
from device_many import timed

import nbkernels as nb

SECONDS = 90
SQUARES, ROWS = (512, 1024, 2048, 4096, 8192), (8, 32, 128, 512)
# dtype, m, n, k, and whether mat2 is the transpose of a row-major matrix
PRODUCTS = [
    *(("bfloat16", n, n, n, True) for n in SQUARES), *(("bfloat16", m, 4096, 4096, True) for m in ROWS),
    *(("float16", n, n, n, False) for n in SQUARES[1:4]), ("bfloat16", 16, 4096, 11008, True),
    ("bfloat16", 1000, 1000, 1000, False), ("float16", 333, 777, 555, True), ("float32", 4096, 4096, 4096, True),
    ("float32", 1024, 1024, 1024, False), ("int8", 4096, 4096, 4096, True), ("int8", 1024, 1024, 1024, False),
]  # fmt: skip
STORE = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-23}


def keywords(dtype):
    return {"int8": {"out_dtype": "int32"}, "float32": {"mode": "tf32"}}.get(dtype, {})


def calls():
    """Each product with aligned matrices, and with a mat1 that tensor copies cannot read."""

    def made(dtype, m, n, k, turned, offset, stand):
        size = dtype_of(dtype).itemsize
        a = stand((m, k), dtype_of(dtype), (k * size, size), offset * size)
        b = stand((k, n), dtype_of(dtype), (size, k * size) if turned else (n * size, size))
        nb.mm(a, b, **keywords(dtype))

    pairs = [(row, offset) for row in PRODUCTS for offset in (0, 1)]
    return {f"tensors {row} {offset}": functools.partial(made, *row, offset) for row, offset in pairs}


def run(report, dry):
    library = device_arrays.torch_of(report, dry)
    if library is None:
        return
    for row in PRODUCTS[:: 6 if dry else 1]:
        try:
            product(report, library, row, dry)
        except Exception as error:
            report(str(row), wrong=f"{type(error).__name__}: {error}"[:300])


def product(report, library, row, dry):
    torch, (dtype, m, n, k, turned) = library.torch, row
    m, n, k = (min(size, 64) for size in (m, n, k)) if dry else (m, n, k)
    device = library.device
    torch.set_float32_matmul_precision("high")

    def random(rows, columns):
        if dtype == "int8":
            return torch.randint(-128, 128, (rows, columns), dtype=torch.int8, device=device)
        return torch.randn(rows, columns, device=device).to(getattr(torch, dtype))

    a, b = random(m, k), random(n, k).T if turned else random(k, n)
    moved = torch.empty(m * k + 1, dtype=a.dtype, device=device)[1:].view(m, k).copy_(a)
    asked = {} if dry and dtype == "float32" else keywords(dtype)
    found, other = nb.mm(a, b, **asked), nb.mm(moved, b, **asked)
    facts = {} if torch.equal(found, other) else {"wrong": "other bits for a matrix that is not aligned"}
    if (worst := error(torch, found, a, b)) > 1:
        facts["wrong"] = f"{worst:.3g} times the bound"
    peer = torch._int_mm if dtype == "int8" else torch.mm
    ours, theirs = functools.partial(nb.mm, a, b, **asked), functools.partial(peer, a, b)
    times = {"ours": [], "torch": []}
    for _ in range(1 if dry else 9):
        for side, call in (("ours", ours), ("torch", theirs)):
            times[side].append(timed(library, call, dry, 5 if m * n * k > 1 << 33 else 20))
    us = {side: sorted(values)[len(values) // 2] for side, values in times.items()}
    ratio = us["torch"] / us["ours"]
    text = f"mm {dtype} {m}x{n}x{k} {'NT' if turned else 'NN'}: {us['ours']:.1f} us, torch / ours {ratio:.3f}"
    report(f"{row}", us=us, worst=worst, text=text, **facts)


def error(torch, found, a, b):
    """The largest error in units of the bound (docs/products.md); of whole numbers, how many are wrong."""
    if found.dtype == torch.int32:
        return int((found.double() != a.double() @ b.double()).sum())
    wanted, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    entry = 2.0**-10 if a.dtype == torch.float32 else 0
    bound = STORE[str(found.dtype).partition(".")[2]] * wanted.abs() + (a.shape[1] / 8 * 2.0**-22 + entry) * size
    return float(((found.double() - wanted).abs() / bound).nan_to_num(torch.inf).max())
