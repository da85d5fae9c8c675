"""Users' functions, made ready to compile."""
