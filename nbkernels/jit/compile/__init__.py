"""What Numba compiles, and how."""
