"""Pictures of what was measured: draw.py with matplotlib, an extra, blocks.py in a terminal, vector.py on a page."""
