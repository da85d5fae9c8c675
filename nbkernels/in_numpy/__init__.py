"""use_in_numpy: NumPy's own operations run our kernels, in code that nobody edits. See docs/numpy.md."""
