"""NumPy's inner loops, over the kernels of the other rooms."""
