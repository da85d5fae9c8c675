"""Compiled functions on disk, and back."""
