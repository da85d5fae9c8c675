"""What compiles: calls in jitted functions, what is used of Numba, signals."""
