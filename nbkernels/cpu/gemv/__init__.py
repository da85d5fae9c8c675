"""Products of a matrix or a vector and a vector."""
