"""Dask arrays."""
