"""Status codes that compiled products return: done, declined, or the path that a product is for.

DONE; DECLINED: nothing is written, more checks are wanted; LARGE: nothing is written, a room, a launch or Ctrl-C is
wanted that the call cannot have by itself. The others name a path of paths.py: the arrays are sound, and nothing is
written yet. SYMMETRIC: likewise, and B is A turned (syrk.py). CHOICE, BY_ROWS, BY_COLUMNS and LACKING + a place in its
table: likewise, but the choice of the path, a kernel of the small path or a micro-kernel is not compiled yet. WANTED +
bytes: likewise, and a room of so many is to be made.
"""

DONE, DECLINED, LARGE, GEMV, THIN, DEEP, SHORT, COLUMNS, PACKED, SMALL = range(10)
BY_ROWS, BY_COLUMNS, CHOICE, SYMMETRIC = range(10, 14)
# Faults of the arrays of a product: checks.py returns the first that it finds.
INNER, BATCHES, OUT, SELF, OVERLAPS, OVERLAPS_SELF, TWICE, UNEVEN = range(14, 22)
LACKING, WANTED = 1 << 8, 1 << 20
PATHS = {GEMV: "gemv", THIN: "thin", DEEP: "deep", SHORT: "short", COLUMNS: "columns", PACKED: "packed", SMALL: "small"}
