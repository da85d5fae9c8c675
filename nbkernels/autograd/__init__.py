"""Derivatives: the formulas of every operation, and what chains them."""
