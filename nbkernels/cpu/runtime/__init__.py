"""Parts that every CPU kernel uses: sizes of caches, threads, launches, status codes."""
