"""The interface between compiled code and Python: memory, arrays, threads."""
