"""Run the doctests of the installed package, wherever it is: python tests/house/run_doctests.py. A test calls it."""

import doctest
import importlib
import pkgutil
import sys
from importlib.util import find_spec


def modules():
    """Every module of nbkernels. dispatch is walked apart: in a clone it stands in another directory."""
    import nbkernels
    import nbkernels.dispatch

    names = ["nbkernels", "nbkernels.dispatch"]
    for package in (nbkernels, nbkernels.dispatch):
        names += [module.name for module in pkgutil.walk_packages(list(package.__path__)[:1], package.__name__ + ".")]
    # __main__ runs the command line when it is imported; the CUDA room needs a GPU to show anything.
    needs = {"nbkernels.torch": "torch", "nbkernels.dask": "dask", "nbkernels.dask.plugin": "distributed"}
    without = [".cuda", *(name for name, library in needs.items() if not find_spec(library))]
    names = [name for name in dict.fromkeys(names) if not name.endswith("__main__")]
    return [name for name in names if not any(part in name for part in without)]


def run():
    """(failed, attempted) over all modules."""
    results = [doctest.testmod(importlib.import_module(name)) for name in modules()]
    return sum(result.failed for result in results), sum(result.attempted for result in results)


if __name__ == "__main__":
    failed, attempted = run()
    print(f"{attempted - failed} passed, {failed} failed")
    sys.exit(failed > 0 or attempted == 0)
