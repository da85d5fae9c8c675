"""A matrix or a vector times a vector."""
