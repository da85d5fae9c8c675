"""Winners of the tuner on disk: a JSON file; a damaged one counts as empty."""

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
        return self._read()[0]

    def problem(self):
        """Why the file counts as none, in a line; None where it is sound or not there."""
        return self._read()[1]

    def _read(self):
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}, None
        except (OSError, ValueError, RecursionError) as error:
            return {}, f"{self.path} is not read: {str(error) or type(error).__name__}"
        if not isinstance(entries, dict):
            return {}, f"{self.path} is not read: a JSON object is wanted"
        sound = {key: entry for key, entry in entries.items() if isinstance(entry, dict) and "candidate" in entry}
        strange = len(entries) - len(sound)
        return sound, f"{self.path}: {strange} of {len(entries)} entries are no winners" if strange else None

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
        return self.add({key: {"candidate": record, "seconds": seconds}})

    def add(self, entries):
        """True where all of {key: entry} are now on disk, beside the others."""
        return self._write(self.entries() | entries)

    def remove(self, keys):
        """True where none of the keys is on disk any more."""
        gone = set(keys)
        return not gone or self._write({key: entry for key, entry in self.entries().items() if key not in gone})

    def _write(self, entries):
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
            return False
        finally:
            if temporary is not None and os.path.exists(temporary):
                os.unlink(temporary)
        return True
