"""Kernels for NumPy arrays on the CPU."""
