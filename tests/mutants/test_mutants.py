"""The list of planted faults does not rot, and the command that plants them tells killed from survived."""

import ast
import shlex

import pytest

from tests.mutants import run
from tests.mutants.table import MUTANTS


def test_there_are_enough_and_each_once():
    assert len(MUTANTS) >= 60
    assert len({mutant[:3] for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_each_fits_its_file(file):
    """Its text is there exactly once, what comes of it is Python and another text, and its tests are there."""
    text = (run.ROOT / file).read_text(encoding="utf-8")
    plain = ast.dump(ast.parse(text))
    for mutant in (mutant for mutant in MUTANTS if mutant.file == file):
        assert ast.dump(ast.parse(run.planted(mutant, text))) != plain, mutant
        words = shlex.split(mutant.tests)
        files = words[: words.index("-k")] if "-k" in words else words
        assert files, mutant
        assert all((run.ROOT / each).is_file() for each in files), mutant


@pytest.mark.release
def test_killed_and_survived_are_told_apart(monkeypatch):
    with run.Tree() as tree:
        dead, alive, lost = (
            run.Mutant("nbkernels/problem.py", "2 * self.m", new, "tests/elementwise/test_strided_plan.py -k distinct")
            for new in ("2 * 2 * self.m", "self.m * 2", "3 * self.m")
        )
        file = tree.path / "tests/elementwise/test_strided_plan.py"
        file.write_text(
            "from nbkernels.problem import GemmProblem\n"
            "def test_distinct():\n    assert GemmProblem(2, 3, 4, 'f4').flops() == 48\n"
        )
        assert tree.judge(dead)[0] == "killed"
        assert tree.judge(alive)[0] == "survived"
        file.write_text(
            "import time\nfrom nbkernels.problem import GemmProblem\n"
            "def test_distinct():\n    time.sleep(0 if GemmProblem(2, 3, 4, 'f4').flops() == 48 else 1000)\n"
        )
        monkeypatch.setattr(run, "LIMIT", 20)
        endless = dead._replace(tests=f"{dead.tests} -x")
        assert tree.judge(endless) == ("endless", "longer than 20 s")
        file.write_text("def test_distinct():\n    assert False\n")
        assert tree.judge(lost._replace(tests="tests/elementwise/test_strided_plan.py"))[0] == "unsound"
        with pytest.raises(ValueError, match="found 0 times"):
            tree.judge(dead._replace(old="no such text"))
        with pytest.raises(ValueError, match="nothing"):
            tree.judge(dead._replace(tests="tests/nothing.py"))
