"""Which tests `python -m tests.registries` runs for an extension."""

from importlib import import_module

import pytest

from tests.registries import REGISTRIES, ROOT, WHOLE_PROJECT, Registry, list_tests_of_registry, main

COLOURS = Registry(("app.colours.COLOURS", "tests.shades.SHADES"), ("tests/languages",))
IMPORT = "from app.colours import COLOURS\n"


@pytest.mark.parametrize(
    ("text", "is_run"),
    [
        pytest.param(f"{IMPORT}for name in COLOURS: print(name)", True, id="a loop"),
        pytest.param(f"{IMPORT}assert WORDS.keys() == COLOURS.keys()", True, id="a table of all entries"),
        pytest.param("from tests.shades import SHADES\nprint(*SHADES)", True, id="part of the entries"),
        pytest.param("def f():\n    from app.colours import COLOURS\n    print(*COLOURS)", True, id="in a function"),
        pytest.param(f"{IMPORT}print(COLOURS['red'])", False, id="one entry"),
        pytest.param("COLOURS = ('red',)\nprint(*COLOURS)", False, id="another thing of this name"),
        pytest.param("from app.colours import mix\nmix()", False, id="something else from its module"),
    ],
)
def test_tests_that_use_all_entries_of_a_registry_are_run(text, is_run):
    tests = list_tests_of_registry(COLOURS, {"tests/test_a.py": text, "tests/shades.py": f"{IMPORT}print(*COLOURS)"})
    assert tests == sorted([*["tests/test_a.py"] * is_run, "tests/languages", *WHOLE_PROJECT])


def test_every_registry_has_its_entries_and_tests_of_its_own(subtests):
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    for name, registry in REGISTRIES.items():
        with subtests.test(registry=name):
            for dotted in registry.imports:
                module, _, entries = dotted.rpartition(".")
                assert len(getattr(import_module(module), entries)) > 1
            tests = list_tests_of_registry(registry, texts)
            assert len(tests) > len(WHOLE_PROJECT)
            assert [test for test in tests if not (ROOT / test).exists()] == []


@pytest.mark.parametrize(("arguments", "said"), [([], "Name one of designs, "), (["desings"], "no registry “desings”")])
def test_without_a_registry_it_says_which_there_are(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
