"""A small language model's forward pass, a token at a time, with weights in float32, bfloat16 and int8.

A step of a decoder is products of one row with all of the weights, so it takes as long as these take to be read. The
weights are random numbers in the shapes of a model of 17 million parameters; each row of the table goes through the
same tokens, and its logits are held against those of float32. With torch installed its own stand beside.

    python examples/language_model.py [LAYERS [WIDTH]]
"""

import os
import statistics
import sys
import time
from importlib.util import find_spec

import numpy as np
from ml_dtypes import bfloat16

os.environ.setdefault("NBKERNELS_FIRST_CALLS", "0")  # compile at the first call, as who serves wants it
import nbkernels

sizes = sys.argv[1:3] if __name__ == "__main__" else []
LAYERS, WIDTH = (*map(int, sizes), *(4, 512)[len(sizes) :])
HEADS, WORDS, TOKENS, ROUNDS = 8, 8192, 16, 3


def model(rng):
    """{name: weights (outputs, inputs)}: embedding, and of each layer the attention's and the two of its MLP."""
    sizes = {"embedding": (WORDS, WIDTH)}
    for i in range(LAYERS):
        sizes |= {f"{i} qkv": (3 * WIDTH, WIDTH), f"{i} out": (WIDTH, WIDTH)}
        sizes |= {f"{i} up": (4 * WIDTH, WIDTH), f"{i} down": (WIDTH, 4 * WIDTH)}
    return {name: rng.standard_normal(size, np.float32) / np.float32(size[1] ** 0.5) for name, size in sizes.items()}


def normalised(x):
    return x / np.sqrt(np.mean(x * x) + 1e-6)


def step(token, embedding, product, keys, values):
    """The logits after a token, (1, WORDS). `product(name, x)` is x times these weights; keys and values hold what the
    tokens before left, of each layer an array (HEADS, tokens, WIDTH // HEADS), and get this one's."""
    x = embedding[token : token + 1]
    for i in range(LAYERS):
        q, k, v = product(f"{i} qkv", normalised(x)).reshape(3, HEADS, 1, -1)
        keys[i], values[i] = (np.concatenate([old, new], 1) for old, new in ((keys[i], k), (values[i], v)))
        scores = nbkernels.bmm(q, keys[i].swapaxes(1, 2)) / np.float32((WIDTH // HEADS) ** 0.5)
        weights = nbkernels.exp(scores - scores.max(-1, keepdims=True))
        seen = nbkernels.bmm(weights / weights.sum(-1, keepdims=True), values[i])
        x = x + product(f"{i} out", seen.reshape(1, WIDTH))
        x = x + product(f"{i} down", np.maximum(product(f"{i} up", normalised(x)), 0))
    return product("embedding", normalised(x))


def run(tokens, embedding, product):
    """Seconds, and the logits after each token."""
    empty = np.empty((HEADS, 0, WIDTH // HEADS), np.float32)
    keys, values, start = [empty] * LAYERS, [empty] * LAYERS, time.perf_counter()
    logits = [step(token, embedding, product, keys, values) for token in tokens]
    return time.perf_counter() - start, np.concatenate(logits)


def forms(weights):
    """{what the weights are: product(name, x)}."""
    packed = {name: nbkernels.pack(w, for_="weight") for name, w in weights.items()}
    halves = {name: nbkernels.pack(w.astype(bfloat16), for_="weight") for name, w in weights.items()}
    whole = {name: nbkernels.quantize(w) for name, w in weights.items()}
    small = {name: nbkernels.quantize(w, group=64, dtype="int4") for name, w in weights.items()}
    found = {
        "float32": lambda name, x: nbkernels.linear(x, weights[name]),
        "float32, packed": lambda name, x: nbkernels.linear(x, packed[name]),
        "bfloat16, packed": lambda name, x: nbkernels.linear(x.astype(bfloat16), halves[name]).astype(np.float32),
        "int8": lambda name, x: nbkernels.linear_q(x, whole[name]),
        "int8, rows too": lambda name, x: nbkernels.linear_q(x, whole[name], dynamic=True),
        "int4": lambda name, x: nbkernels.linear_q(x, small[name]),
    }
    if find_spec("torch"):
        import torch

        linear, tensors = torch.nn.functional.linear, {name: torch.from_numpy(w) for name, w in weights.items()}
        shorter = {name: w.bfloat16() for name, w in tensors.items()}
        found["torch float32"] = lambda name, x: linear(torch.from_numpy(x), tensors[name]).numpy()
        found["torch bfloat16"] = lambda name, x: linear(torch.from_numpy(x).bfloat16(), shorter[name]).float().numpy()
    return found


def measured(rounds=ROUNDS):
    """{form of the weights: (median seconds of TOKENS, largest difference of a logit, largest logit)}, by turns."""
    rng = np.random.default_rng(0)
    weights, tokens = model(rng), rng.integers(0, WORDS, TOKENS)
    every, times, logits = forms(weights), {}, {}
    for product in every.values():
        run(tokens[:2], weights["embedding"], product)  # which compiles, or loads what is compiled
    for _ in range(rounds):
        for name, product in every.items():
            seconds, logits[name] = run(tokens, weights["embedding"], product)
            times.setdefault(name, []).append(seconds)
    expected = logits["float32"]
    return {
        name: (statistics.median(each), float(abs(logits[name] - expected).max()), float(abs(expected).max()))
        for name, each in times.items()
    }


def main():
    count = sum(w.size for w in model(np.random.default_rng(0)).values())
    print(f"{count / 1e6:.0f} million weights, {TOKENS} tokens\n")
    print(f"{'weights':18} tokens/s  largest difference of a logit")
    for name, (seconds, difference, largest) in measured().items():
        print(f"{name:18} {TOKENS / seconds:8.0f}  {difference:.1g} of {largest:.1f}")


if __name__ == "__main__":
    main()
