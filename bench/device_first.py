"""Stage: what the first calls of a process cost, in a process of their own each, with torch there already."""

import json
import subprocess
import sys

SECONDS = 60
SCRIPT = """
import json, sys, time
import torch
x, v = torch.ones(64, 64, device={device!r}), torch.ones(64, device={device!r})
(x @ x + x).sum().item()
times, start = {{}}, time.perf_counter()
def lap(what):
    global start
    times[what] = round(time.perf_counter() - start, 4)
    start = time.perf_counter()
import nbkernels as nb
lap("import")
if {carried!r}:
    from nbkernels.cuda import cubins
    cubins.CARRIED.append(cubins.Path({carried!r}))
lap("cubins module")
for name, call in (("add", lambda: nb.add(x, x)), ("mm", lambda: nb.mm(x, x)), ("mm again", lambda: nb.mm(x, x)),
                   ("mm third", lambda: nb.mm(x, x)), ("sum_to", lambda: nb.sum_to(x, (64,))),
                   ("linear", lambda: nb.linear(x, x, v))):
    call().sum().item()
    lap(name)
compilers = "numba", "numba.cuda", "numba.cuda.cudadrv.nvvm", "cuda.bindings.nvvm"
compilers = [name for name in compilers if name in sys.modules]
print(json.dumps([times, compilers]))
"""


def run(report, dry):
    from nbkernels.cuda import cubins

    carried = str(cubins.CARRIED[-1]) if len(cubins.CARRIED) > 1 else ""
    for turn in ("first process", "second process", "third process"):
        code = SCRIPT.format(device="cpu" if dry else "cuda", carried=carried)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode:
            report(turn, wrong=done.stderr[-600:])
            continue
        times, compilers = json.loads(done.stdout.splitlines()[-1])
        said = ", ".join(f"{what} {seconds}" for what, seconds in times.items())
        said += f"; imported: {' '.join(compilers) or 'no compiler'}"
        report(turn, seconds=times, imported=compilers, text=f"{turn}, s: {said}")
