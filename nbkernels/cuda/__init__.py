"""Kernels for arrays on a CUDA device. What is imported before a kernel is compiled imports no compiler."""
