"""Reductions and scans of NumPy arrays."""
