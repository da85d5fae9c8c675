"""Winners that have changed while the process runs: what products know of them is found anew."""

from __future__ import annotations

from ... import winners
from ...shield import whole
from ..gemm import blocking, fast, kinds, packed, paths, setup, tuned
from .status import GEMV, PACKED


def renew() -> None:
    """From the next call on products go by the winners that are kept now, all of them."""
    with whole():
        winners.entries.cache_clear()
        paths.renew()
        planned = blocking.default, kinds.default_tiles, setup.template
        for each in (*planned, tuned.tuned, fast._planned, packed._table):
            each.cache_clear()
        for dtype, (_, _, table) in list(fast._entries.items()):
            if table is None:
                del fast._entries[dtype]  # a plan, with tiles of its own
            else:
                table.ways[2 * (PACKED - GEMV)] = 0
