"""Compile kernels for levels of processors, to come with a wheel: `python -m nbkernels prebuild`.

Child processes make the calls of a set, each for one level (jit/compile/cross.py), and leave

    OUT/<toolchain>/<level>/*.nbc    what the package carries
    OUT/<toolchain>/toolchain.json   what it was made with and from
    OUT/.work/                       the host's copies, with which an interrupted or a larger build goes on

`NBKERNELS_PREBUILT=OUT python -m build` makes a wheel that carries it (setup.py).
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from pathlib import Path

from tqdm import tqdm

from ..plots import columns
from . import warmup

CHILD = "from nbkernels.commands import prebuild; prebuild.serve({level!r}, {out!r})"
# Two threads, wherever it is built: what shares its work is compiled, too.
ENVIRONMENT = {"NBKERNELS_TUNED": "0", "NUMBA_NUM_THREADS": "2"}


def chosen(names) -> list:
    """The levels of these names, those of DEFAULT for none; ValueError where one cannot be built here."""
    from ..jit.disk import levels

    triple, _, features = levels.target()
    own = levels.family(triple)
    found = [levels.parse(name) for name in names or levels.DEFAULT.get(own, ())]
    if not found:
        raise ValueError(f"there are no levels of {triple}")
    for level in found:
        if level.family != own:
            raise ValueError(f"{level} is compiled on a machine of its kind: this one is {triple}")
    if own == "x86-64" and not levels.parse("x86-64-v3").features <= features:
        raise ValueError("the machine at hand, which runs what is built, is older than x86-64-v3")
    return found


def run(names, work, jobs, out, progress=True) -> int:
    """Make every call for every level; prints what there is now. 1 where a call failed, which is named, else 0."""
    for name in [name for name in os.environ if name.startswith(("NBKERNELS_", "NUMBA_"))]:
        del os.environ[name]  # what is built depends on none
    levels, start, failed = chosen(names), time.perf_counter(), []
    from ..jit.disk import files

    made = Path(out).absolute() / files.toolchain()
    made.mkdir(parents=True, exist_ok=True)
    parts = warmup.groups(work)
    jobs = min(jobs or os.cpu_count() or 1, len(parts))
    try:
        with tqdm(total=len(levels) * len(work), desc="prebuild", disable=not progress) as bar:
            for level in levels:
                build(str(level), made, parts, jobs, bar, failed)
    finally:
        for file in made.glob("*/*.tmp"):  # of a child that was ended as it wrote
            file.unlink(missing_ok=True)
    files.put(made / files.RECORD, json.dumps(files.made_by(), indent=1).encode())
    rows = []
    for level in sorted(path for path in made.iterdir() if path.is_dir()):
        sizes = [file.stat().st_size for file in level.glob("*.nbc")]
        rows.append((level.name, len(sizes), f"{sum(sizes) / 1e6:.1f}"))
    print(columns.fitted(rows, ("level", "kernels", "MB"), columns.room()))
    print(f"{len(levels) * len(work) - len(failed)} calls in {time.perf_counter() - start:.1f} s; {made}")
    print(f"a wheel with them: NBKERNELS_PREBUILT={out} python -m build")
    return 1 if failed else 0


def build(level, made, parts, jobs, bar, failed) -> None:
    """All calls for one level."""
    (made / level).mkdir(exist_ok=True)
    environment = ENVIRONMENT | {"NBKERNELS_CACHE_DIR": str(made.parent / ".work")}
    child = functools.partial(warmup.Child, CHILD.format(level=level, out=str(made / level)), **environment)

    def done(label, error):
        bar.update()
        if error:
            failed.append(label)
            bar.write(f"prebuild: {level}: {label}: {error}", file=sys.stderr)

    warmup.share(parts, jobs, lambda label: bar.set_postfix_str(f"{level} {label}", refresh=False), done, child)


def serve(level, out) -> None:
    """What a child does: the calls that come in, compiled for the level."""
    from ..jit.compile import cross
    from ..jit.disk import levels

    cross.start(levels.parse(level), Path(out))
    warmup.serve()
