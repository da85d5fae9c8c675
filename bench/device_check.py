"""What only a GPU tells of the CUDA kernels, in stages, each a process with a time limit. Run by device_check.sh.

    --build DIR     compile all that the stages need into DIR, in parallel, on a machine without a GPU (--arch 9.0a)
    --cubins DIR    run what was built there, and compile nothing
    --stage NAME    only these stages, of a build, too; --list prints them
    --minutes 4     for all stages together
    --dry           the stages on a machine without a GPU, with arrays of the CPU: of the script, not of the kernels

A stage is a function run(report, dry) of a module bench/device_NAME.py; its calls() are what is built for it, as
nbkernels.cuda.rehearsal takes them, and SECONDS what it may take. report(name, ...) writes a line of JSON at once, to
$OUT or bench/results; `wrong` in it is a failure, `text` goes into the summary. Exit status: 0 where all is right, 1
where not, 2 where something is missing.
"""

import argparse
import contextlib
import datetime
import functools
import importlib
import importlib.metadata
import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# In order of doubt.
STAGES = ("first", "right", "tensors", "host", "many", "speed", "loops", "graph", "streams", "tuned", "sanitized")
SUMMARY = 80  # lines


def module(name):
    return importlib.import_module(f"device_{name}")


def calls(stages=STAGES):
    """What stages launch."""
    found = {}
    for name in stages:
        found.update(getattr(module(name), "calls", dict)())
    return list(found.items())


def build(options):
    """Compile, a line for each kernel."""
    from nbkernels.commands import cubins

    start, failed = time.perf_counter(), 0
    stages = functools.partial(calls, options.stage or STAGES)
    count, refused, made = cubins.build(stages, cubins.chosen(options.arch), options.jobs, options.build)
    for call, error in refused.items():
        print(f"not built: {call}: {error}")
    for done, (kernel, seconds, error) in enumerate(made, 1):
        failed += error is not None
        print(f"{done}/{count} {seconds:5.1f} s  {kernel}{f': {error}' if error else ''}", flush=True)
    print(f"{count - failed} kernels in {options.build}, {time.perf_counter() - start:.0f} s")
    return int(failed > 0)


def trusted(folder, place):
    """A copy of the folder that nobody else can write, or its files would not be loaded."""
    copy = Path(shutil.copytree(folder, place))
    for each in (copy, *copy.rglob("*")):
        each.chmod(each.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    return copy


def stage(options):
    """What a stage's process does."""
    if not options.dry:
        from nbkernels.cuda import cubins

        if options.cubins:
            cubins.CARRIED.append(Path(options.cubins))
            cubins.compiled = missing
    with open(options.results, "a", encoding="utf-8") as file:

        def report(name, **facts):
            file.write(json.dumps({"stage": options.run, "name": name} | facts, default=str) + "\n")
            file.flush()

        start = time.perf_counter()
        try:
            module(options.run).run(report, options.dry)
        except Exception as error:
            report("the stage", wrong=f"{type(error).__name__}: {error}"[:500])
            raise
        report("end", seconds=round(time.perf_counter() - start, 1))


def missing(kernel, arch):
    raise RuntimeError(f"not among the cubins: {kernel} of {arch}")


def run(options):
    """Every stage in turn, then the summary."""
    folder = Path(os.environ.get("OUT") or HERE / "results")
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "device.jsonl"
    results.write_text("")
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as place:
        cubins = ["--cubins", str(trusted(options.cubins, Path(place, "cubins")))] if options.cubins else []
        environment = os.environ | {"NBKERNELS_CACHE_DIR": str(Path(place, "cache"))}
        for name in options.stage or STAGES:
            line = [
                sys.executable,
                __file__,
                "--run",
                name,
                "--results",
                str(results),
                *cubins,
                *["--dry"] * options.dry,
            ]
            limit = min(getattr(module(name), "SECONDS", 60), end - time.monotonic())
            with open(folder / f"device-{name}.log", "w", encoding="utf-8") as log:
                status = ended(line, environment, log, limit)
            if status == 0:
                Path(log.name).unlink()
            else:
                what = f"ended with status {status}" if status else f"took more than its {max(limit, 0):.0f} s"
                with open(results, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"stage": name, "name": "the process", "wrong": what}) + "\n")
            print(f"stage {name}: {'done' if status == 0 else what}", flush=True)
    return summary(results)


def ended(line, environment, log, limit):
    """The exit status of a process; None where it took longer than its limit, and was ended."""
    if limit <= 0:
        return None
    try:
        return subprocess.run(line, env=environment, stdout=log, stderr=log, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        return None


def summary(results):
    """Print it; 1 where something was wrong."""
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    groups = [(name, list(group)) for name, group in itertools.groupby(lines, key=lambda line: line["stage"])]
    shown = max(3, (SUMMARY - 4 * len(groups)) // max(len(groups), 1))
    total = 0
    for name, group in groups:
        wrong = [line for line in group if line.get("wrong")]
        total += len(wrong)
        seconds = "".join(f", {line['seconds']} s" for line in group if line["name"] == "end")
        print(f"== {name}: {len(group)} lines, {len(wrong)} wrong{seconds}")
        texts = [f"WRONG {line['name']}: {line['wrong']}"[:200] for line in wrong]
        texts = texts[: shown // 2 + 1] + [line["text"] for line in group if "text" in line]
        print("\n".join(texts[:shown] + [f"... {len(texts) - shown} more"] * (len(texts) > shown)))
    keep(lines, results.parent)
    print(f"device check: {f'{total} wrong' if total else 'all right'}; {results}")
    return int(total > 0)


def keep(lines, folder):
    """The rows that were timed on a card as a file of results, which bench/report.py makes tables of."""
    rows = [line["row"] for line in lines if "row" in line and not line.get("wrong")]
    if not rows or absent():
        return
    from nbkernels.dispatch import driver

    name, (_, count) = driver.name(0), driver.properties(0)
    meta = {"cpu": name, "cores": count, "date": datetime.date.today().isoformat(), "versions": {}}
    for package in ("numpy", "torch", "numba", "numba-cuda"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            meta["versions"][package] = importlib.metadata.version(package)
    file = folder / f"device-{name.lower().replace(' ', '-')}.json"
    file.write_text(json.dumps({"meta": meta, "rows": rows}, indent=1), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", metavar="DIR")
    parser.add_argument("--arch", nargs="+", default=["9.0a"])
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--cubins", metavar="DIR")
    parser.add_argument("--stage", nargs="+", choices=STAGES)
    parser.add_argument("--minutes", type=float, default=4)
    for flag in ("dry", "list"):
        parser.add_argument(f"--{flag}", action="store_true")
    for inner in ("run", "results"):
        parser.add_argument(f"--{inner}", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.list:
        print(*STAGES)
        return 0
    if options.build:
        return build(options)
    if options.run:
        return stage(options)
    if lacks := "" if options.dry else absent():
        print(f"device check: this machine lacks {lacks}", file=sys.stderr)
        return 2
    return run(options)


def absent():
    """What is not here that CUDA calls need, in a line."""
    from nbkernels.dispatch import driver

    try:
        driver.bindings()
        driver.ask("cuDeviceGet", 0)
    except (ImportError, RuntimeError) as error:
        return " ".join(str(error).split())
    return ""


if __name__ == "__main__":
    sys.exit(main())
