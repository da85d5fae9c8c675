"""Hostile calls, drawn at random: python -m tests.fuzz."""
