from .. import jit  # noqa: F401, imports Numba
