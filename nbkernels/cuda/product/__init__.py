"""Matrix products on CUDA devices of compute capability 8.0 and newer: tiers that differ in how they copy and multiply.

config    how a product is cut: GemmConfig, what is legal, candidates          choose    one pure function picks it
layout    where numbers lie in shared memory and in a warp's lanes             ptx       every PTX instruction
copy      global -> shared memory                                              atom      one step of k in registers
schedule  block -> batch item, tile, segment of k                              mainloop  copies and steps, in order
epilogue  alpha, beta, x, store                                                kernel    a kernel from these parts
gemm      the call: normalise, choose, launch
matrix    operands as numbers, and how their slices are read                   pack      operands that are copied first

config, choose, layout, matrix, pack and gemm do not import Numba: a process that finds its kernels on disk never loads
the compiler.
"""
