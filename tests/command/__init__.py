"""python -m nbkernels: its commands and what they print."""
