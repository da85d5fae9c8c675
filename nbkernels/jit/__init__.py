"""The only room that touches Numba's internals: the disk cache, compile-time records, vector IR, ndarray fields."""
