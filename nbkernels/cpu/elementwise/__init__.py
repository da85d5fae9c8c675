"""Element-wise operations on NumPy arrays."""
