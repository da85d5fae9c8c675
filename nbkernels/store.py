"""Winners of the tuner on disk: a JSON file that nothing can break."""

import dataclasses
import json
import os
import tempfile
from pathlib import Path


class Store:
    """Winners in a JSON file, {key: {"candidate": ..., "seconds": ...}}.

    A missing, truncated or foreign file reads as empty. A write goes to a temporary file that then replaces the old
    one, so a reader sees the old winners or the new ones; a directory that cannot be written loses the winner, no more.
    """

    def __init__(self, path):
        self.path = Path(path)

    def entries(self):
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(entries, dict):
            return {}
        return {key: entry for key, entry in entries.items() if isinstance(entry, dict) and "candidate" in entry}

    def get(self, key, kind=None):
        """The winner kept under key, as kind(**fields) where kind is given; None where there is none that fits."""
        entry = self.entries().get(key)
        if entry is None or kind is None:
            return None if entry is None else entry["candidate"]
        try:
            return kind(**entry["candidate"])
        except (TypeError, ValueError):  # written by another version: other fields
            return None

    def put(self, key, candidate, seconds):
        """True where the winner is now on disk."""
        record = dataclasses.asdict(candidate) if dataclasses.is_dataclass(candidate) else candidate
        entries = self.entries() | {key: {"candidate": record, "seconds": seconds}}
        temporary = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=self.path.parent, prefix=self.path.name, suffix=".tmp", delete=False, encoding="utf-8"
            ) as file:
                temporary = file.name
                json.dump(entries, file, indent=1, sort_keys=True)
            os.replace(temporary, self.path)
        except OSError:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)
            return False
        return True
