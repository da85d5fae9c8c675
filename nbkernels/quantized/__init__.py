"""Weights as small whole numbers with scales, and products with them."""
