"""What compiled code and Python know of each other: memory, arrays, threads."""
