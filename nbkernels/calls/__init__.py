"""Calls as data: described by their arrays, in sets, recorded from a program, and made again."""
