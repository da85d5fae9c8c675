"""The dispatcher by itself, with tiny kernels: schemas, tables, devices, arrays of others."""
