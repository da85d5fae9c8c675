"""Threads, stacks, memory, the machine."""
