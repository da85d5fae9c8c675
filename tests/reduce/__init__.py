"""Folds: sum_to, reduce, accumulate."""
