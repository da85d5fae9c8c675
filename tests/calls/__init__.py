"""Calls of the public functions, of whichever operation: arguments, explain, first and later calls, pickles."""
