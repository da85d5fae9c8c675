"""Replacements for NumPy's inner loops, built on the kernels of the other rooms."""
