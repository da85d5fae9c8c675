"""Forget what products know of the tuner's winners, when those change while the process runs."""

from __future__ import annotations

from ... import winners
from ...shield import whole
from ..gemm import blocking, context_setup, fast, kinds, packed, paths, tuned
from .status import GEMV, PACKED


def renew() -> None:
    """From the next call on products go by the winners that are kept now, all of them."""
    with whole():
        winners.entries.cache_clear()
        paths.renew()
        planned = blocking.default, kinds.default_tiles, context_setup.template
        for each in (*planned, tuned.tuned, packed._table):
            each.cache_clear()
        fast.forget()
        for _, _, table in fast._entries.values():
            table.ways[2 * (PACKED - GEMV)] = 0
