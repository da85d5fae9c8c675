"""Elementary and other functions of floats, as plain scalar functions that every device compiles."""
