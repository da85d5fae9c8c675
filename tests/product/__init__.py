"""Products on the CPU: every plan, layout and dtype, their order of summation, the choice among plans."""
