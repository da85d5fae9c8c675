"""`nbkernels.tune` and `python -m nbkernels tune`: which tiles are fastest here, and keeping them.

ask.py says what is asked for, race.py who is fastest (it knows no kernel), cpu.py and cuda.py what a candidate is and
how it is timed, keep.py what is kept, result.py what is told of it, run.py all of it in order.
"""
