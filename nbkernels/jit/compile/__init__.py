"""Compilation by Numba: types, LLVM IR, machine code."""
