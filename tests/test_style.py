"""How Easel is written: names that can be guessed, and sentences that say who does what (.github/CONTRIBUTING.md)."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
APP = sorted((ROOT / "app").rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
TEXTS = [
    *APP,
    *TESTS,
    *BENCHMARKS,
    *(ROOT / "templates").rglob("*.html"),
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "README.md",
]
# Participles, pronouns and prepositions do not say what a function does or returns.
RIDDLES = """of by at to told said begun followed beside apart together look looked found those more each own
kept taken judged counted settled heard asked spoken known whence within amiss anew whom who where
over further unseen compared given drawn fewest likely supposed gather here it one some mine there"""
# Names that modules of a kind share by contract, such as `fit` of the estimators; one search finds any other name.
SHARED = """fit run update draw step read write create delete main routes api page add remove get settings start
stop close check render parse from_row interval density score variance prior sample simulate"""
FUNCTION = re.compile(r"^\s*(?:async )?def (\w+)", re.MULTILINE)
# Constructions that read like a translation, each with what to write.
CONSTRUCTIONS = {
    r"\b[Ww]ho(m)?ever\b": "name the person: the annotator, the campaign owner",
    r"\b(anew|heeds?|heeded|amiss|befalls?)\b": "use today's word",
    r'"""(?:What|Whom?) [a-z]': "begin with a verb or the noun that is returned",
    r"\b(of whom|to whom|for whom)\b": "make two sentences",
}


def functions(body):
    return [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_name_is_a_riddle():
    named = {(path.name, path.stem) for path in (*APP, *TESTS, *BENCHMARKS)}
    named |= {
        (path.name, name.strip("_"))
        for path in (*APP, *TESTS, *BENCHMARKS)
        for name in FUNCTION.findall(path.read_text())
    }
    assert sorted((file, name) for file, name in named if name in RIDDLES.split()) == []


def test_functions_of_modules_have_names_of_their_own():
    modules = defaultdict(set)
    for path in APP:
        for node in functions(ast.parse(path.read_text()).body):
            modules[node.name.strip("_")].add(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1 and name not in SHARED.split()} == {}


def test_sentences_are_written_in_plain_english():
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in TEXTS}
    assert [
        f"{path}: “{match[0]}”; {instead}"
        for path, text in texts.items()
        for pattern, instead in CONSTRUCTIONS.items()
        for match in re.finditer(pattern, text)
    ] == []
