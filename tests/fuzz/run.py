"""Cases one after another in a child, which may crash or hang; the parent counts, prints and goes on."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

from tabulate import tabulate
from tqdm import tqdm

BLOCK = 48  # cases of one theme, whose compiled code they share


def families():
    """name -> (theme, case, weight) of every class of cases."""
    from . import elementwise, folds, illegal, modes, others, products, unary

    modules = elementwise, unary, folds, products, others, illegal, modes
    return {name: each for module in modules for name, each in module.CLASSES.items()}


def draw(seed, number, known, only=""):
    """(class, theme, case's rng) of a case: nothing but these two numbers decides."""
    import numpy as np

    rng = np.random.default_rng([seed, number // BLOCK, 1])
    names = [name for name in known if only in name]
    weights = np.array([known[name][2] for name in names], float)
    name = names[int(rng.choice(len(names), p=weights / weights.sum()))]
    threads = int(rng.integers(1, 3))
    return name, known[name][0](rng), threads, np.random.default_rng([seed, number, 2])


def child(seed, numbers, only="", stream=sys.stdout):
    """Run cases; a line before and a line after each."""
    import faulthandler

    import numba

    from .judge import Finding

    faulthandler.enable()
    known = families()
    for number in numbers:
        name, theme, threads, rng = draw(seed, number, known, only)
        print(json.dumps({"begins": number, "class": name}), file=stream, flush=True)
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        found = None
        try:
            known[name][1](theme, rng, lambda call: print(json.dumps({"calls": call}), file=stream, flush=True))
        except Finding as finding:
            found = str(finding)
        except Exception as error:
            frame = traceback_end(error)
            found = f"the check itself fails: {type(error).__name__}: {error} at {frame}"
        print(json.dumps({"ends": number, "finding": found}), file=stream, flush=True)


def traceback_end(error):
    frame = error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    return f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"


TICK = 0.5  # seconds of waiting for a child
LIFE = 50_000  # cases of a child: it keeps the kernels of all of them, 2 GB of them by then


class Campaign:
    """A run of cases that goes on past whatever a case does."""

    def __init__(self, seed, start=0, only="", hang=240.0, state=None):
        self.seed, self.next, self.only, self.hang, self.state = seed, start, only, hang, state
        self.done, self.found, self.shown = Counter(), Counter(), Counter()
        self.command = [sys.executable, "-m", "tests.fuzz", "--seed", str(seed), "--child"]
        if only:
            self.command += ["--only", only]
        if state and os.path.exists(state):
            with open(state, encoding="utf-8") as stream:
                kept = json.load(stream)
            if kept["seed"] != seed or kept["only"] != only:
                raise SystemExit(f"{state} is of seed {kept['seed']} and of classes {kept['only']!r}")
            self.next, self.done, self.found = kept["next"], Counter(kept["done"]), Counter(kept["found"])

    def save(self):
        if self.state:
            kept = {"seed": self.seed, "only": self.only, "next": self.next, "done": self.done, "found": self.found}
            with open(f"{self.state}.new", "w", encoding="utf-8") as stream:
                json.dump(kept, stream)
            os.replace(f"{self.state}.new", self.state)

    def report(self, name, number, what, call):
        """Count a finding; print it, but of many that are alike the first three."""
        self.found[name] += 1
        what = " ".join(what.split())[:500]
        alike = name, call.partition("(")[0], re.sub(r"[-+\d.e]+", "#", what)[:60]
        self.shown[alike] += 1
        if self.shown[alike] <= 3:
            only = f" --only {self.only!r}" if self.only else ""
            tqdm.write(
                f"FOUND {name}: {call}\n    {what}\n    python -m tests.fuzz --seed {self.seed} --case {number}{only}"
            )

    def run(self, seconds, cases=None):
        end, stop = time.monotonic() + seconds, None if cases is None else self.next + cases
        with tqdm(total=round(seconds), unit="s", disable=None) as bar:
            while time.monotonic() < end and (stop is None or self.next < stop):
                try:
                    self.spawn(end, stop, bar)
                finally:
                    self.save()
        return self.table()

    def spawn(self, end, stop, bar):
        """Cases in one child, until it ends, hangs, has had LIFE cases or the time is up."""
        process = subprocess.Popen([*self.command, "--from", str(self.next)], text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        lines, errors = queue.Queue(), []
        readers = [
            threading.Thread(target=lambda: [lines.put(x) for x in process.stdout] + [lines.put(None)], daemon=True),
            threading.Thread(target=lambda: [errors.append(x) for x in process.stderr], daemon=True),
        ]
        for reader in readers:
            reader.start()
        running, begun, silent, last = None, time.monotonic() - seconds_of(bar), 0.0, self.next + LIFE
        last = last if stop is None else min(last, stop)
        try:
            while True:
                now = time.monotonic()
                bar.n = min(round(now - begun), bar.total)
                bar.set_postfix(cases=sum(self.done.values()), found=sum(self.found.values()), refresh=True)
                if (now >= end and (running is None or silent > 2)) or self.next >= last:
                    return
                try:
                    line = lines.get(timeout=TICK)
                except queue.Empty:
                    silent += TICK  # not by the clock: it goes on while a machine is suspended
                    if silent > self.hang:
                        self.broken(running, f"hangs for {self.hang:.0f} s", "")
                        return
                    continue
                if line is None:
                    process.wait()
                    time.sleep(0.1)
                    self.broken(running, death(process.returncode), tail(errors))
                    return
                running, silent = self.heard(json.loads(line), running), 0.0
        finally:
            process.kill()
            process.wait()
            for reader in readers:
                reader.join(5)
            process.stdout.close()
            process.stderr.close()

    def heard(self, line, running):
        """What a child said: the case that it is at now."""
        if "begins" in line:
            return line | {"calls": ""}
        if "calls" in line:
            return running | {"calls": f"{running['calls']}; {line['calls']}".removeprefix("; ")}
        self.next = line["ends"] + 1
        self.done[running["class"]] += 1
        if line["finding"]:
            self.report(running["class"], line["ends"], line["finding"], running["calls"])
        if self.next % 100 == 0:  # a run may be killed
            self.save()
        return None

    def broken(self, running, how, errors):
        """A child that ended in the middle of a case, or before the first."""
        if running is None:
            raise SystemExit(f"the cases cannot be run: {how}\n{errors}")
        self.next = running["begins"] + 1
        self.done[running["class"]] += 1
        self.report(running["class"], running["begins"], f"{how} {errors}", running["calls"])

    def table(self):
        rows = [(name, self.done[name], self.found[name]) for name in sorted(self.done)]
        rows.append(("all", sum(self.done.values()), sum(self.found.values())))
        return tabulate(rows, headers=["class", "cases", "findings"])


def seconds_of(bar):
    return bar.n


def death(code):
    return f"the process ends by {signal.Signals(-code).name}" if code < 0 else f"the process ends with status {code}"


def tail(errors):
    kept = [line.strip() for line in errors if line.strip().startswith("File")][:4] or errors[-5:]
    return " | ".join(line.strip() for line in kept)
