"""What several files of tests share."""

import pytest


@pytest.fixture
def table(monkeypatch, tmp_path):
    """The tuner's store, in a directory of its own."""
    from nbkernels import winners
    from nbkernels.cuda import tuned
    from nbkernels.jit.disk import files

    monkeypatch.setattr(files, "directory", lambda: tmp_path / "toolchain")
    monkeypatch.setenv("NBKERNELS_TUNED", "1")
    tuned.renew()
    yield winners.store()
    monkeypatch.undo()
    tuned.renew()
