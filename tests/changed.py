"""As a program: the test files that concern what changed since `main`, one a line, for `make check`.

A changed module concerns the tests that import it; what is not Python concerns the tests that SEEN_IN names.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEEN_IN = {
    "templates/admin/*analysis*": ["tests/browser/test_analysis.py", "tests/analysis/test_page.py"],
    "templates/admin/*": ["tests/browser/test_admin.py", "tests/browser/test_dashboard.py"],
    "templates/*.html": [
        "tests/browser/test_scoring.py",
        "tests/browser/test_plain.py",
        "tests/serving/test_address.py",
    ],
    "static/analysis*": ["tests/browser/test_analysis.py"],
    "static/*": ["tests/browser/test_scoring.py", "tests/browser/test_dashboard.py"],
    "migrations/*": ["tests/database/test_migrations.py"],
    "*.md": ["tests/test_documentation.py"],
    "*": ["tests/test_packaging.py"],
}


def changed(base: str) -> list[str]:
    """Files that differ from where this branch left `base`, or that git does not know yet; as paths from the root."""
    fork = _git("merge-base", base, "HEAD")[0]
    return sorted({*_git("diff", "--name-only", fork), *_git("ls-files", "--others", "--exclude-standard")})


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")


def concerned(paths: Iterable[str], tests: dict[str, str]) -> set[str]:
    """Of the test files (text by path) those that concern these changed files."""
    return {test for path in paths if path for test in _tests_of(path, tests)}


def _tests_of(path: str, tests: dict[str, str]) -> Iterator[str]:
    if path in tests:
        yield path
    elif path.endswith(".py") and path.startswith(("app/", "tests/")):
        yield from (test for test, text in tests.items() if imports(text, path))
    else:
        named = next(names for pattern, names in SEEN_IN.items() if fnmatch(path, pattern))
        yield from (test for test in named if test in tests)


def imports(text: str, path: str) -> bool:
    """Whether a test imports the module at this path, whole or something of it."""
    package, _, module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".").rpartition(".")
    whole = rf"^from {re.escape(package)} import [^\n]*\b{module}\b"
    part = rf"^(from|import) {re.escape(package)}\.{module}\b"
    return re.search(f"{whole}|{part}", text, re.MULTILINE) is not None


def main() -> None:
    tests = {str(file.relative_to(ROOT)): file.read_text() for file in (ROOT / "tests").rglob("test_*.py")}
    sys.stdout.write("\n".join(sorted(concerned(changed("main"), tests) or {"tests/test_packaging.py"})) + "\n")


if __name__ == "__main__":
    main()
