"""NumPy's and the array API's names, and use_in_numpy."""
