"""LLVM IR: vectors, chains of products, conversions."""
