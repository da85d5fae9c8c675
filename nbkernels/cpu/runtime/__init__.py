"""What every kernel runs on: the machine's caches, threads, launches, statuses."""
