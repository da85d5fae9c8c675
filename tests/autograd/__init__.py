"""Derivatives: their formulas, every dtype, chains of calls."""
