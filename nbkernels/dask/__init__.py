"""Dask arrays: `nbkernels.mm(x, y)` of them gives one, and dask's own products of NumPy chunks run here.

The operations of this library take dask arrays without this module being imported: they build dask's graphs, whose
tasks call the same operations on chunks. `register` has dask's own `x @ y`, `tensordot` and `einsum` run here, and
`Plugin` prepares the workers of a cluster. docs/dask.md says more.

>>> import dask.array as da, nbkernels, nbkernels.dask                          # doctest: +SKIP
>>> x = da.ones((8192, 8192), chunks=4096, dtype="int32")                       # doctest: +SKIP
>>> nbkernels.mm(x, x)                                                          # doctest: +SKIP
dask.array<mm, shape=(8192, 8192), dtype=int32, chunksize=(4096, 4096), chunktype=numpy.ndarray>
"""

try:
    import dask.array as _  # noqa: F401
except ImportError as error:
    raise ImportError("nbkernels.dask needs dask, which is not installed: pip install 'nbkernels[dask]'") from error

from .lookups import register

__all__ = ["Plugin", "register"]


def __getattr__(name):
    if name != "Plugin":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ImportError("nbkernels.dask.Plugin needs distributed: pip install 'nbkernels[dask]'") from error
    from .plugin import Plugin

    return Plugin


def __dir__():
    return sorted(__all__)
