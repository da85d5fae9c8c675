"""A product of dask arrays on a cluster of this machine: a worker is killed half way, data need not fit into memory.

python examples/dask_cluster.py
python examples/dask_cluster.py --rows 8192 --inner 49152 --columns 512 --memory 512MiB --scaling
"""

import argparse
import logging
import os
import signal
import time
from typing import Any

import numpy as np

import nbkernels as nb

try:
    import dask.array as da
    from dask.array.core import normalize_chunks
    from distributed import Client, LocalCluster, wait

    import nbkernels.dask
except ImportError:
    raise SystemExit("this example needs distributed: pip install 'nbkernels[dask]'") from None

SEGMENT = 4096  # chunks of k that begin at its multiples: the bits of one call


def values(block_info):
    """Numbers that are the same whenever and wherever a chunk is made."""
    where = block_info[None]["array-location"]
    rows, columns = (np.arange(*bounds, dtype=np.float32) for bounds in where)
    return np.sin(np.add.outer(rows * 3, columns * 7)).astype(np.float32)


def made(rows, columns, chunks):
    chunks = normalize_chunks(chunks, (rows, columns), dtype=np.float32)
    return da.map_blocks(values, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))


def arrays(options, rows):
    chunk = min(2048, max(1, rows // 4))
    x = made(rows, options.inner, (chunk, SEGMENT))
    return x, made(options.inner, options.columns, (SEGMENT, -1))


def product(options, workers, rows, kill=False):
    """(figures, result) of one product; x is in the cluster's memory, or on its disks, before."""
    settings: dict[str, Any] = dict(threads_per_worker=1, memory_limit=options.memory, dashboard_address=None)
    settings["silence_logs"] = logging.CRITICAL
    with (
        LocalCluster(workers, **settings) as cluster,
        Client(cluster) as opened,
    ):
        client: Any = opened
        client.register_plugin(nbkernels.dask.Plugin(products=False, warm_up=[warm_up] if options.scaling else ()))
        x, y = arrays(options, rows)
        x = x.persist()
        wait(x)
        spilled = sum(client.run(on_disk).values())
        start = time.perf_counter()
        future = client.compute(nb.mm(x, y))
        left = kill_one(client, future, x.npartitions) if kill else None
        result = future.result()
        seconds = time.perf_counter() - start
    figures: dict[str, Any] = dict(workers=workers, memory=options.memory, mib=x.nbytes >> 20, disk_mib=spilled >> 20,
                                   products=x.npartitions, left_at_kill=left, seconds=seconds)  # fmt: skip
    killed = f", one killed with {left} products left" if kill else ""
    there = f"x of {figures['mib']} MiB, {figures['disk_mib']} MiB of it on disk"
    print(f"{workers} worker{'s' * (workers > 1)}: {there}, {seconds:.2f} s{killed}", flush=True)
    return figures, result


def kill_one(client, future, products):
    """Kill a worker when half of the products of chunks are left; how many were."""
    pids, left = list(client.run(os.getpid).values()), 0
    while not future.done() and not 0 < (left := client.run_on_scheduler(unfinished)) <= products // 2:
        time.sleep(0.002)
    os.kill(pids[0], signal.SIGKILL)
    return 0 if future.done() else left


def unfinished(dask_scheduler):
    ahead = ("waiting", "processing", "queued", "no-worker")
    return sum("-chain" in str(key) and task.state in ahead for key, task in dask_scheduler.tasks.items())


def warm_up():
    nb.mm(np.ones((512, SEGMENT), np.float32), np.ones((SEGMENT, 64), np.float32))


def on_disk(dask_worker):
    return getattr(dask_worker.data, "spilled_total", (0, 0))[1]


def parsed(arguments=None):
    parser = argparse.ArgumentParser()
    for name, size in (("rows", 1024), ("inner", 8 * SEGMENT), ("columns", 128)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--memory", default="1GiB", help="of each worker")
    parser.add_argument("--scaling", action="store_true", help="one worker and two, then twice the rows")
    return parser.parse_args(arguments)


def runs(options):
    """(figures of each product, whether all have the bits of one call)"""
    killed, result = product(options, 2, options.rows, kill=True)
    found, results = [killed], [result]
    for workers, rows in ((1, 1), (2, 1), (2, 2)) if options.scaling else ():
        figures, result = product(options, workers, rows * options.rows)
        found.append(figures)
        results += [result] * (rows == 1)
    x, y = (array.compute(scheduler="threads") for array in arrays(options, options.rows))
    whole = nb.mm(x, y)
    return found, all(np.array_equal(result, whole) for result in results)


def main():
    options = parsed()
    found, equal = runs(options)
    if options.scaling:
        one, two, more = (figures["seconds"] for figures in found[1:])
        print(f"strong scaling {one / two:.2f} of 2, weak {2 * one / more:.2f} of 2")
    print(f"the bits of one call: {equal}")
    return not equal


if __name__ == "__main__":
    raise SystemExit(main())
