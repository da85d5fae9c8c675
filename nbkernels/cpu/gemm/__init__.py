"""Matrix products of NumPy arrays."""
