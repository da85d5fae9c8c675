"""`python -m nbkernels bench`: this library beside its peers, in turns; bench/*.py measure by the same parts."""
