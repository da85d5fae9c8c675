"""Plugin: a worker of a dask cluster, prepared for this library."""

from __future__ import annotations

import asyncio
import contextlib

from distributed import WorkerPlugin

from .. import threads as threads_of_calls
from ..in_numpy.use import use_in_numpy as in_numpy
from ..threads import ceiling
from .lookups import register


class Plugin(WorkerPlugin):
    """client.register_plugin(Plugin()): each worker, also one that comes later, runs dask's products here

    threads     of each call, 1: a worker calls in as many threads of its own as it has. More than OMP_NUM_THREADS,
                which dask's nanny sets to 1, are an error that says where to change that
    products    whether `register` holds in the worker: dask's own `@`, tensordot and einsum; floats: its `floats`
    use_in_numpy  whether `use_in_numpy` does: the element-wise operations of dask's tasks, too, by the same `floats`
    warm_up     "everyday", "all" or a file that NBKERNELS_RECORD wrote, as for `python -m nbkernels warmup --from`, or
                functions without arguments: called once before the worker has tasks, so that what they need is
                compiled. Workers that share a disk cache compile once

    >>> from distributed import Client                                              # doctest: +SKIP
    >>> client = Client(n_workers=2, threads_per_worker=1)                          # doctest: +SKIP
    >>> client.register_plugin(nbkernels.dask.Plugin(warm_up="everyday"))           # doctest: +SKIP
    """

    name = "nbkernels"

    def __init__(self, *, threads=1, products=True, floats=False, use_in_numpy=False, warm_up=()):
        if not isinstance(warm_up, str):
            warm_up = tuple(warm_up)
            if wrong := [each for each in warm_up if not callable(each)]:
                raise TypeError(f"Plugin: warm_up is the name of a set, a file or functions, not {wrong[0]!r}")
        threads_of_calls(threads)  # its error
        self.threads, self.products, self.floats, self.warm_up = threads, products, floats, warm_up
        self.use_in_numpy, self._held = use_in_numpy, None

    async def setup(self, worker):
        if self.threads > ceiling():
            raise ValueError(
                f"nbkernels.dask.Plugin: threads={self.threads} and the worker's OMP_NUM_THREADS is {ceiling()}: set "
                f"distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS in dask's config before the cluster starts"
            )
        with contextlib.ExitStack() as held:  # an error on the way leaves nothing behind
            held.enter_context(threads_of_calls(self.threads))
            if self.products:
                held.enter_context(register(floats=self.floats))
            if self.use_in_numpy:
                held.enter_context(in_numpy(floats=self.floats))
            await asyncio.to_thread(self._warm)  # the worker goes on telling its scheduler that it lives
            self._held = held.pop_all()

    def _warm(self):
        if isinstance(self.warm_up, str):
            from ..calls import sets
            from ..commands.warmup import attempt

            for _, call in sets.calls(self.warm_up, print):
                attempt(call)
        else:
            for function in self.warm_up:
                function()

    def teardown(self, worker):
        if self._held is not None:
            self._held.close()
        self._held = None

    def __getstate__(self):
        return self.__dict__ | {"_held": None}
