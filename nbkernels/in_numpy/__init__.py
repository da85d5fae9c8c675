"""NumPy's own operations made to run our kernels, in code that nobody edits: docs/numpy.md."""
