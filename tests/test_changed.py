"""Which tests `make check` runs."""

import pytest

from tests.changed import SEEN_IN, concerned

TESTS = {
    "tests/auth/test_login.py": "from app.auth import login, passwords\nfrom app.errors import Conflict\n",
    "tests/serving/test_leases.py": "from app.serving import leases\nfrom app.database.session import transaction\n",
    "tests/test_packaging.py": "from pathlib import Path\n",
    "tests/test_documentation.py": "",
}


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("app/auth/passwords.py", {"tests/auth/test_login.py"}),
        ("app/database/session.py", {"tests/serving/test_leases.py"}),
        ("app/errors.py", {"tests/auth/test_login.py"}),
        ("app/auth/__init__.py", {"tests/auth/test_login.py"}),
        ("app/serving/leases_of.py", set()),
        ("tests/test_documentation.py", {"tests/test_documentation.py"}),
        ("docs/operators.md", {"tests/test_documentation.py"}),
        ("Makefile", {"tests/test_packaging.py"}),
    ],
)
def test_a_change_concerns_the_tests_that_import_it_or_look_at_it(path, tests):
    assert concerned([path], TESTS) == tests


def test_every_test_that_looks_at_what_is_not_python_is_there(pytestconfig):
    named = {test for tests in SEEN_IN.values() for test in tests}
    assert {test for test in named if not (pytestconfig.rootpath / test).is_file()} == set()
