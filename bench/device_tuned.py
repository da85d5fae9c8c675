"""Stage: the tuner on a product of each kind: whether candidates have the default's bits, and which is the fastest."""

from nbkernels.tuning import configs
from nbkernels.tuning import run as tuning

SECONDS, BUDGET = 60, 7  # of all; of each product
KINDS = [("float32", None, "NN"), ("float64", None, "NN"), ("complex64", None, "NN"), ("bfloat16", None, "NN"),
         ("float32", "tf32", "NT"), ("int8", None, "NT"), ("float16", "chain", "NN")]  # fmt: skip
SHAPE = 1008, 1520, 2048  # ragged in most tiles


def side(dtype, mode):
    """The tuner's side without neighbours, which only times choose, and without processes that compile."""
    made = configs.Configs(dtype, mode)
    made.neighbours, made.compile = lambda *_: [], lambda *_: None
    return made


def calls():
    def call(stand, dtype, mode, layout):
        made = side(dtype, mode)
        pairs = [(config, (*SHAPE, layout, 1)) for config in (None, *made.candidates([SHAPE]))]
        for _, each in configs.rehearsed(made.operands, made.result, made.mode, pairs):
            each(stand)

    return {f"tuned {kind}": lambda stand, kind=kind: call(stand, *kind) for kind in KINDS}


def run(report, dry):
    for dtype, mode, layout in () if dry else KINDS:
        made = side(dtype, mode)
        found = tuning.tune(SHAPE, side=made, layout=layout, budget=BUDGET, save=False)
        ranked = found.candidates("square")
        best, ratio, *_ = ranked[0] if ranked else ({}, 0.0)
        said = " ".join(f"{name}={size}" for name, size in best.items())
        text = f"{made.dtype} {layout}: of {len(ranked)} {said} at {ratio:.3f} of the default's speed; {found.notes}"
        wrong = {"wrong": dict(list(found.failed.items())[:3])} if found.failed else {}
        report(made.dtype, text=text[:300], candidates=[line[:2] for line in ranked], **wrong)
