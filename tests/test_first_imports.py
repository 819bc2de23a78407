"""Workers of a test run share the first imports of test modules."""

from tests.first_imports import iterate_share


def test_each_test_module_is_imported_first_by_one_worker():
    shares = [[*iterate_share(place, 4)] for place in range(4)]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    names = [name for share in shares for name in share]
    assert len(names) == len({*names})
    assert {"tests.test_first_imports", "tests.browser.test_scoring"} <= {*names}


def test_modules_are_named_as_the_collection_names_them():
    assert __name__ in iterate_share(0, 1)
