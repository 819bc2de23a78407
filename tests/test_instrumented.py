"""What SlipCover counts is the same whether the code it watches was made now or is kept on disk."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "watched_example"
SOURCE = '''\
"""Branches, a nested function and a comprehension."""

def parity(number):
    if number % 2:
        return "odd"
    def even():
        return "even"
    return even()

LARGE = [each for each in range(4) if each > 2]
'''


# In a process of its own: since Python 3.12 there is one SlipCover in each.
RUN = f"""
import json, sys
from pathlib import Path
import slipcover
from tests.instrumented import WatchingFinder
watched = slipcover.Slipcover(immediate=True, branch=True)
sys.path.insert(0, sys.argv[1])
sys.meta_path.insert(0, WatchingFinder(watched, "{PACKAGE}", Path(sys.argv[1], "kept")))
import {PACKAGE}
{PACKAGE}.parity(int(sys.argv[2]))
(counted,) = watched.get_coverage()["files"].values()
print(json.dumps(counted))
"""


MAKE_SHARE = """
import sys
from pathlib import Path
import slipcover
from tests.instrumented import WatchingFinder
finder = WatchingFinder(slipcover.Slipcover(immediate=True, branch=True), "package", Path(sys.argv[1], "kept"))
finder.make_share(Path(sys.argv[1], "package"), int(sys.argv[2]), 2)
assert "package" not in sys.modules
"""


@pytest.fixture
def executed(tmp_path):
    """Return what SlipCover counts in the example while `parity` is called."""
    (tmp_path / f"{PACKAGE}.py").write_text(SOURCE)

    def run(number):
        command = [sys.executable, "-c", RUN, tmp_path, str(number)]
        return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)

    return run


def kept_file(tmp_path):
    return tmp_path / "kept" / f"{PACKAGE}.bin"


def test_kept_code_counts_what_new_code_counts(executed, tmp_path):
    made_now = executed(1)
    made = kept_file(tmp_path).stat()
    assert executed(1) == made_now
    assert kept_file(tmp_path).stat().st_ino == made.st_ino
    assert {4, 5} <= {*made_now["executed_lines"]}
    assert [4, 5] in made_now["executed_branches"]
    assert 7 in made_now["missing_lines"]


def test_kept_code_tells_what_another_run_does(executed):
    lines = [{*executed(number)["executed_lines"]} for number in (1, 2)]
    assert lines[0] - lines[1] == {5}
    assert lines[1] - lines[0] == {6, 7, 8}


def test_a_changed_module_is_made_again(executed, tmp_path):
    before = executed(1)
    source = tmp_path / f"{PACKAGE}.py"
    source.write_text(f"{source.read_text()}MORE = 1\n")
    assert {*executed(1)["executed_lines"]} - {*before["executed_lines"]} == {11}


@pytest.mark.parametrize("spoilt", [b"", b"no code", None])
def test_a_file_that_is_spoilt_or_cut_off_is_made_again(executed, tmp_path, spoilt):
    made_now = executed(1)
    file = kept_file(tmp_path)
    file.write_bytes(file.read_bytes()[:-40] if spoilt is None else spoilt)
    assert executed(1) == made_now


def test_each_worker_makes_its_share_of_the_modules_without_importing_them(tmp_path):
    for name in ("__init__", "first", "second", "deep/third"):
        path = tmp_path / "package" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("VALUE = 1\n")
    made: list[set[str]] = []
    for place in (0, 1):
        subprocess.run([sys.executable, "-c", MAKE_SHARE, tmp_path, str(place)], cwd=ROOT, check=True)
        made.append({path.stem for path in (tmp_path / "kept").iterdir()}.difference(*made))
    assert made == [{"package", "package.first"}, {"package.deep.third", "package.second"}]
