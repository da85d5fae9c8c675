"""Faults that tests must find: python -m tests.mutants."""
