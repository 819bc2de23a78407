"""As a program: the test files that concern what changed since `main`, one a line, for `make check`.

A changed module concerns the tests of its room, or of its part of the room where those have a folder of their own. It
concerns those that import it, too, and those that import what imports it. It may show further away: all of that is for
`make test`, since most tests are a few imports away from most modules. A `conftest.py` concerns all tests below it, and
so does what it imports of the tests; the application, which fixtures start for nearly every test, does not count for
that. What is not Python concerns the tests that SEEN_IN names.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEEN_IN = {
    "templates/admin/*analysis*": ["tests/browser/test_analysis.py", "tests/analysis/test_page.py"],
    "templates/admin/*dashboard*": ["tests/browser/test_dashboard.py", "tests/dashboard/test_routes.py"],
    "templates/admin/*": [
        *("tests/browser/test_admin.py", "tests/browser/test_dashboard.py"),
        *("tests/campaigns/test_routes.py", "tests/accounts/test_account.py", "tests/test_pictures.py"),
    ],
    "templates/*.html": [
        *("tests/browser/test_scoring.py", "tests/browser/test_plain.py", "tests/browser/test_visits.py"),
        *("tests/annotation/hits/test_address.py", "tests/test_pictures.py"),
    ],
    "static/admin/analysis*": ["tests/browser/test_analysis.py"],
    "static/hit*": [
        *("tests/browser/test_scoring.py", "tests/browser/test_visits.py"),
        *("tests/browser/test_connection.py", "tests/browser/test_appearance.py"),
    ],
    "static/*": ["tests/browser/test_scoring.py", "tests/browser/test_dashboard.py"],
    "migrations/*": ["tests/database/test_migrations.py"],
    "docs/pictures/*": ["tests/test_pictures.py"],
    "docs/*": ["tests/test_documentation.py", "tests/test_project_pages.py", "tests/test_site.py"],
    ".mkdocs.yml": ["tests/test_site.py", "tests/browser/test_documentation_site.py"],
    "*.md": ["tests/test_documentation.py", "tests/test_project_pages.py"],
    "*": ["tests/test_packaging.py"],
}
ALWAYS = "tests/test_style.py"  # quick, and what else concerns a change may all be of the lane `slow`


def changed(base: str) -> list[str]:
    """Files that differ from where this branch left `base`, or that git does not know yet; as paths from the root.

    A clone may have the base at its origin alone. Without any, only what is not committed differs.
    """
    known = [name for name in (base, f"origin/{base}") if _git("branch", "--all", "--list", name, f"remotes/{name}")[0]]
    fork = _git("merge-base", known[0], "HEAD")[0] if known else "HEAD"
    return sorted({*_git("diff", "--name-only", fork), *_git("ls-files", "--others", "--exclude-standard")})


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")


def concerned(paths: Iterable[str], files: Mapping[str, str]) -> set[str]:
    """Return the tests among these Python files (text by path) that concern these changed files."""
    tests = {file for file in files if Path(file).name.startswith("test_")}
    importers = _importers(files)
    return {test for path in paths if path for test in _tests_of(path, tests, importers)}


def _tests_of(path: str, tests: set[str], importers: Mapping[str, set[str]]) -> Iterator[str]:
    if not (path.endswith(".py") and path.startswith(("app/", "benchmarks/", "tests/"))):
        named = next(names for pattern, names in SEEN_IN.items() if fnmatch(path, pattern))
        yield from tests.intersection(named)
        return
    direct = {path, *importers[_module(path)]}
    near = direct.union(*(importers[_module(file)] for file in direct))
    yield from near & tests
    fixtures = [file for file in near if Path(file).name == "conftest.py" and path.startswith("tests/")]
    folders = [f"{Path(file).parent}/" for file in fixtures] + _rooms(path, tests)
    yield from (test for test in tests if test.startswith(tuple(folders)))


def _rooms(path: str, tests: set[str]) -> list[str]:
    """Return the test folders of a module's room or part, whose tests reach it without an import."""
    app, *room, name = Path(path).parts
    if app != "app" or not room:
        return []
    parts = [f"tests/{folder}/" for folder in accumulate(room, "{}/{}".format)]
    tested = [folder for folder in parts if any(test.startswith(folder) for test in tests)]
    return tested[-1:] + ["tests/api/"] * (name == "api.py" or "api" in room)


def _importers(files: Mapping[str, str]) -> defaultdict[str, set[str]]:
    """Return the files that import each module, or something from it."""
    importers = defaultdict(set)
    for file, text in files.items():
        for name in imported_names(text):
            importers[name].add(file)
    return importers


def imported_names(text: str) -> set[str]:
    """Return all imports of a file: dotted names, and those of the packages around them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {around for name in names for around in accumulate(name.split("."), "{}.{}".format)}


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def main() -> None:
    folders = (ROOT / "app", ROOT / "benchmarks", ROOT / "tests")
    files = {str(file.relative_to(ROOT)): file.read_text() for folder in folders for file in folder.rglob("*.py")}
    sys.stdout.write("\n".join(sorted({*concerned(changed("main"), files), ALWAYS})) + "\n")


if __name__ == "__main__":
    main()
