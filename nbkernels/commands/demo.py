"""The demo: a two-layer digit classifier, trained by this library's operations and by NumPy's.

    y = W2 relu(W1 x + b1) + b2,    loss = mean over the batch of sum(max(0, 1 - t*y)**2),  t = +1 at the digit, else -1

The squared hinge loss needs no exp, so every array operation of the program is one of the two operation sets below;
loading, shuffling and counting right answers are the host's. Gradients come from row-major arrays through transposed
views: dX = dY W, dW = dYᵀ X, db = sum_to(dY), with no transposed copy.
"""

import sys
import time
from dataclasses import dataclass, fields
from types import SimpleNamespace

import numpy as np
from tqdm import tqdm

import nbkernels
from nbkernels import first_calls, tune
from nbkernels.benches import measure, rows, suites
from nbkernels.data import digits
from nbkernels.dispatch import views
from nbkernels.plots import columns

CLASSES = 10
MOMENTUM = 0.9
SEED = 0


def _numpy_addmm_(self, mat1, mat2, *, beta):
    self *= beta
    self += mat1 @ mat2
    return self


def _numpy_add_(self, other, *, alpha):
    self += alpha * other
    return self


# What a NumPy user writes for each operation that the program calls.
NUMPY = SimpleNamespace(
    mm=np.matmul,
    linear=lambda input, weight, bias: input @ weight.T + bias,
    addmm_=_numpy_addmm_,
    add=lambda self, other, *, alpha=1: self + other if alpha == 1 else self + alpha * other,
    add_=_numpy_add_,
    subtract=np.subtract,
    multiply=np.multiply,
    divide=np.divide,
    maximum=np.maximum,
    sum_to=lambda self, shape: self.sum(axis=0),
)


@dataclass
class Layers:
    """Parameters, or their velocities: w1 (hidden, 64), b1 (hidden,), w2 (10, hidden), b2 (10,)."""

    w1: object
    b1: object
    w2: object
    b2: object

    def arrays(self):
        return [getattr(self, field.name) for field in fields(self)]

    def map(self, function):
        return Layers(*map(function, self.arrays()))


@dataclass(frozen=True)
class Device:
    """How arrays get to where the operations run and back, and how to transpose one there without a copy."""

    name: str
    put: object
    get: object
    transpose: object
    synchronise: object


CPU = Device("cpu", np.ascontiguousarray, np.asarray, np.transpose, lambda: None)


class Unavailable(Exception):
    """What the wanted device lacks, in one line."""


def cuda_device():
    """The current CUDA device, arrays as Numba's device arrays; Unavailable says what is missing."""
    try:
        from numba import cuda
    except ImportError as error:
        raise Unavailable(f"numba.cuda cannot be imported ({error}); install nbkernels[cuda12] or [cuda13]") from None
    if not cuda.is_available():
        raise Unavailable("no CUDA GPU: Numba finds no usable driver; see `python -m nbkernels info`")
    # Not array.T, which copies a device array.
    return Device("cuda", cuda.to_device, lambda array: array.copy_to_host(), views.transpose, cuda.synchronize)


def forward(ops, device, p, x):
    """(relu(W1 x + b1), W2 relu(W1 x + b1) + b2) for a batch x (b, 64): (b, hidden) and (b, 10)."""
    hidden = ops.maximum(ops.add(ops.mm(x, device.transpose(p.w1)), p.b1), 0)
    return hidden, ops.linear(hidden, p.w2, p.b2)


def step(ops, device, p, velocity, x, t, rate):
    """One step of gradient descent with momentum on the batch x (b, 64), t (b, 10); p and velocity change in place."""
    h, y = forward(ops, device, p, x)
    margin = ops.maximum(ops.subtract(1, ops.multiply(t, y)), 0)
    dy = ops.multiply(ops.multiply(t, margin), -2 / x.shape[0])
    slope = ops.divide(h, ops.maximum(h, np.finfo(h.dtype).tiny.item()))  # relu': h / h = 1, or 0 / tiny = 0
    dh = ops.multiply(ops.mm(dy, p.w2), slope)

    ops.addmm_(velocity.w1, device.transpose(dh), x, beta=MOMENTUM)  # MOMENTUM * velocity + dYᵀ X
    ops.addmm_(velocity.w2, device.transpose(dy), h, beta=MOMENTUM)
    velocity.b1 = ops.add(ops.sum_to(dh, p.b1.shape), velocity.b1, alpha=MOMENTUM)
    velocity.b2 = ops.add(ops.sum_to(dy, p.b2.shape), velocity.b2, alpha=MOMENTUM)
    for parameter, change in zip(p.arrays(), velocity.arrays()):
        ops.add_(parameter, change, alpha=-rate)


def split(dtype):
    """(train, test), each (x, t, labels), x scaled to 0..1; the test set is a fixed random fifth."""
    pixels, labels = digits()
    order = np.random.default_rng(SEED).permutation(len(labels))
    x = (pixels[order] / 16).astype(dtype)
    t = np.where(labels[order, None] == np.arange(CLASSES), 1, -1).astype(dtype)
    held_out = len(labels) // 5
    both = [slice(held_out, None), slice(held_out)]
    return [(x[part], t[part], labels[order][part]) for part in both]


def initial(hidden, inputs, dtype):
    """He's normal start: standard deviation sqrt(2 / inputs of the layer), biases zero."""
    rng = np.random.default_rng(SEED)
    shapes = (hidden, inputs), (CLASSES, hidden)
    w1, w2 = (rng.normal(0, np.sqrt(2 / shape[1]), shape).astype(dtype) for shape in shapes)
    return Layers(w1, np.zeros(hidden, dtype), w2, np.zeros(CLASSES, dtype))


def train(name, ops, device, *, hidden, epochs, batch, rate, dtype, progress=True):
    """Train from a fixed start on fixed batches: (test scores on the host, seconds of training, of an epoch, of a first
    step). Of epochs the median: the machine may be busy."""
    (x, t, _), (x_test, _, _) = split(dtype)
    p = initial(hidden, x.shape[1], dtype).map(lambda array: device.put(array.copy()))
    velocity = p.map(lambda array: device.put(np.zeros(array.shape, dtype)))
    x, t, x_test = device.put(x), device.put(t), device.put(x_test)

    if progress and ops is nbkernels:
        print("one step compiles its kernels, or loads those of an earlier run ...", file=sys.stderr)
    start = time.perf_counter()  # on a copy: it changes nothing
    copies = [layers.map(lambda array: device.put(device.get(array).copy())) for layers in (p, velocity)]
    step(ops, device, *copies, x[:batch], t[:batch], rate)
    device.synchronise()
    first = time.perf_counter() - start

    tune.settle()
    times = [time.perf_counter()]
    for _ in tqdm(range(epochs), name, unit="epoch", disable=not progress):
        for i in range(0, x.shape[0] - batch + 1, batch):
            step(ops, device, p, velocity, x[i : i + batch], t[i : i + batch], rate)
        device.synchronise()
        times.append(time.perf_counter())
    scores = device.get(forward(ops, device, p, x_test)[1])
    return scores, times[-1] - times[0], float(np.median(np.diff(times))), first


def products(hidden, batch):
    """The matrix products of one step: what each computes, and its m, n, k."""
    inputs = digits()[0].shape[1]
    return [
        ("hidden = x W1ᵀ", batch, hidden, inputs),
        ("y = hidden W2ᵀ + b2", batch, CLASSES, hidden),
        ("dhidden = dY W2", batch, hidden, CLASSES),
        ("dW1 = dhiddenᵀ x", hidden, inputs, batch),
        ("dW2 = dYᵀ hidden", CLASSES, hidden, batch),
    ]


def run(*, device="cpu", hidden=128, epochs=40, batch=64, rate=0.01, dtype="float32", progress=True, table=True):
    """Train with both operation sets and print what the module's docstring promises. Returns the test accuracy. The
    first step compiles all kernels, so that no epoch has slower first calls (docs/first_call.md)."""
    first_calls.CALLS = 0
    place = CPU if device == "cpu" else cuda_device()
    settings = dict(hidden=hidden, epochs=epochs, batch=batch, rate=rate, dtype=dtype, progress=progress)
    scores, seconds, epoch, first = train("nbkernels", nbkernels, place, **settings)
    reference, numpy_seconds, numpy_epoch, _ = train("NumPy    ", NUMPY, CPU, **settings)

    labels = split(dtype)[1][2]
    accuracy = float(np.mean(scores.argmax(axis=1) == labels))
    numpy_accuracy = float(np.mean(reference.argmax(axis=1) == labels))
    difference = np.abs(scores - reference).max()
    largest = np.abs(reference).max()
    print(
        columns.text(f"""
1,797 digits, 64 -> {hidden} -> {CLASSES}, {dtype}, {epochs} epochs in batches of {batch}, on {place.name}
test accuracy         {accuracy:.4f} on {len(labels)} held-out digits (NumPy {numpy_accuracy:.4f})
largest difference    {difference:.2e} between the two programs' scores, which reach {largest:.2f}
an epoch, median      nbkernels {epoch:.4f} s, NumPy {numpy_epoch:.4f} s ({numpy_epoch / epoch:.2f}x)
time                  nbkernels {seconds:.3f} s, NumPy {numpy_seconds:.3f} s
first step            {first:.2f} s: compiles its kernels, or loads them
""")
    )
    print(columns.fitted(_what_ran(place, hidden, batch, dtype), ["product", "m n k", "kernel"]))
    if table and device == "cpu":
        print("\naddmm(bias, a, b) against a @ b + bias, in this run:")
        from nbkernels.cpu.runtime import threads

        products = suites.addmm(dtype, (16, 64, 256, 1024))
        print(rows.table(measure.row(each, threads.count(), ["NumPy"], 0.15, 5, peak=False) for each in products))
    return accuracy


def _what_ran(place, hidden, batch, dtype):
    def kernel(m, n, k):
        found = nbkernels.explain(nbkernels.mm, *(place.put(np.empty(shape, dtype)) for shape in ((m, k), (k, n))))
        return f"{found.path} {found.tile or ''}"

    return [(text, f"{m} {n} {k}", kernel(m, n, k)) for text, m, n, k in products(hidden, batch)]
