"""The commands of `python -m nbkernels`, but for tune and bench, which have rooms of their own."""
