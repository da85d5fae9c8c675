"""Compiled functions on disk: written, found and loaded."""
