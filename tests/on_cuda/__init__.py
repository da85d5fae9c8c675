"""CUDA without a GPU: kernels assembled, interpreted and simulated; what the host asks a driver for."""
