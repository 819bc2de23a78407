"""Which tests `make check` runs."""

import pytest

from tests.changed import SEEN_IN, concerned

FILES = {
    "app/accounts/__init__.py": "",
    "app/accounts/login.py": "from app.accounts import passwords\nfrom app.errors import Conflict\n",
    "app/accounts/passwords.py": "",
    "app/accounts/pages/account.py": "from app.accounts import login\n",
    "app/accounts/api.py": "",
    "app/cli/users.py": "def add():\n    from app.accounts.login import log_in\n",
    "app/database/session.py": "",
    "app/errors.py": "",
    "app/annotation/hits/leases.py": "from app.database.session import (\n    fetch,\n    transaction,\n)\n",
    "tests/conftest.py": "from app.accounts import login\nfrom app.database import session\n",
    "tests/servers.py": "",
    "tests/api/test_api.py": "",
    "tests/accounts/test_login.py": "from app.accounts import login, passwords\n",
    "tests/accounts/test_account.py": "",
    "tests/browser/conftest.py": "from tests.servers import serving\n",
    "tests/browser/test_scoring.py": "",
    "tests/annotation/hits/test_leases.py": "from app.annotation.hits import leases\n",
    "tests/annotation/hits/test_visits.py": "",
    "tests/annotation/onboarding/test_start.py": "",
    "tests/test_cli.py": "from app.cli.users import add\n",
    "tests/test_server.py": "from tests.servers import serving\n",
    "tests/test_packaging.py": "from pathlib import Path\n",
    "tests/test_documentation.py": "",
}
TESTS = {file for file in FILES if "/test_" in file}
AUTH = {"tests/accounts/test_login.py", "tests/accounts/test_account.py"}
HITS = {"tests/annotation/hits/test_leases.py", "tests/annotation/hits/test_visits.py"}


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        pytest.param("app/accounts/pages/account.py", AUTH, id="the tests of its room"),
        pytest.param("app/annotation/hits/undo.py", HITS, id="those of its part of a room"),
        pytest.param(
            "app/annotation/redirects.py", HITS | {"tests/annotation/onboarding/test_start.py"}, id="of all its parts"
        ),
        pytest.param("app/accounts/api.py", AUTH | {"tests/api/test_api.py"}, id="those of the API"),
        pytest.param("app/accounts/login.py", AUTH | {"tests/test_cli.py"}, id="what imports it inside a function"),
        pytest.param("app/database/session.py", {"tests/annotation/hits/test_leases.py"}, id="two imports away"),
        pytest.param("app/errors.py", {"tests/accounts/test_login.py"}, id="outside of rooms"),
        pytest.param("app/accounts/passwords.py", AUTH, id="no further than two imports away"),
        pytest.param("app/accounts/__init__.py", AUTH | {"tests/test_cli.py"}, id="a package"),
        pytest.param("app/accounts/removed.py", AUTH, id="a module that is gone"),
        pytest.param("tests/test_documentation.py", {"tests/test_documentation.py"}, id="a test"),
        pytest.param("tests/conftest.py", TESTS, id="fixtures of all"),
        pytest.param("tests/browser/conftest.py", {"tests/browser/test_scoring.py"}, id="fixtures of a folder"),
        pytest.param(
            "tests/servers.py", {"tests/test_server.py", "tests/browser/test_scoring.py"}, id="what fixtures import"
        ),
        pytest.param("docs/operators/install.md", {"tests/test_documentation.py"}, id="documentation"),
        pytest.param("Makefile", {"tests/test_packaging.py"}, id="anything else"),
    ],
)
def test_a_change_concerns_the_tests_that_are_near_it(path, tests):
    assert concerned([path], FILES) == tests


def test_every_test_that_looks_at_what_is_not_python_is_there(pytestconfig):
    named = {test for tests in SEEN_IN.values() for test in tests}
    assert {test for test in named if not (pytestconfig.rootpath / test).is_file()} == set()
