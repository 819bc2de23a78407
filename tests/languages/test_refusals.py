"""Whatever is refused to annotators has words in every language."""

import ast
from pathlib import Path

from app import errors
from app.http.languages.refusals import ANNOTATOR_REFUSALS

APP = Path(__file__).parents[2] / "app"
OF_RESEARCHERS = (
    "annotation/platforms/answer_files.py",
    "annotation/platforms/column_mapping.py",
    "annotation/platforms/easel_results.py",
    "annotation/platforms/time_parsing.py",
    "annotation/platforms/mturk/results.py",
    "annotation/platforms/cell_reading.py",
    "annotation/platforms/tool_formats.py",
    "annotation/onboarding/personal_links.py",
    "annotation/onboarding/participant_lists.py",
    "annotation/onboarding/practice_sets.py",
)  # tables of theirs
OF_PROGRAMS = (
    "annotation/hits/api.py",
    "annotation/hits/program_annotators.py",
    "annotation/onboarding/api.py",
)  # which read codes
ROOMS = [path for room in ("annotation", "designs") for path in sorted((APP / room).rglob("*.py"))]
MET = [
    *(path for path in ROOMS if path.relative_to(APP).as_posix() not in OF_RESEARCHERS + OF_PROGRAMS),
    *(APP / name for name in ("media/pages.py", "media/media_store.py", "http/dependencies.py")),
]
# In rooms of annotators, and yet none of them meets it.
NOT_MET = {
    "baseline_unknown": "at the launch",
    "criterion_not_found": "in the analysis and on pages of researchers",
    "criterion_unknown": "of a program",
    "remark_not_offered": "of a program: of what a page sends, that alone is taken that is asked for",
    "item_unknown": "of a program: a form of ours names only items that it shows",
}
CLASSES = {n: one for n, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.Refusal)}


def refusals_in(source):
    """The codes that a module refuses with: of its own, or those of the classes where it gives none."""
    found = set()
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        own = [argument.value for argument in call.keywords if argument.arg == "code"]
        constants = [one for value in own for one in ast.walk(value) if isinstance(one, ast.Constant)]
        found |= {one.value for one in constants if isinstance(one.value, str)}
        name = getattr(call.func, "id", "")
        found |= {CLASSES[name].code} if name in CLASSES and not own else set()
    return found


def test_every_file_that_is_left_out_is_there():
    assert [name for name in OF_RESEARCHERS + OF_PROGRAMS if not (APP / name).is_file()] == []


def test_every_refusal_that_an_annotator_can_meet_has_its_words(subtests):
    for path in MET:
        with subtests.test(path=path):
            assert refusals_in(path.read_text()) - ANNOTATOR_REFUSALS.keys() - NOT_MET.keys() == set()


def test_who_asks_by_a_personal_link_that_is_not_there_has_words_too():
    assert (
        "personal_link_unknown"
        in refusals_in((APP / "annotation/onboarding/personal_links.py").read_text()) & ANNOTATOR_REFUSALS.keys()
    )


def test_no_words_are_kept_for_a_refusal_that_is_gone():
    sources = [path.read_text() for path in APP.rglob("*.py") if path.name != "refusals.py"]
    assert [code for code in {*ANNOTATOR_REFUSALS, *NOT_MET} if not any(f'"{code}"' in text for text in sources)] == []


def test_refusals_are_found(subtests):
    for source, codes in (
        ('raise Invalid("No.", code="a_new_one")', {"a_new_one"}),
        ('raise Gone("No.", code="one" if late else "other")', {"one", "other"}),
        ('raise Gone("No.")', {"gone"}),
        ("raise ValueError(1)", set()),
    ):
        with subtests.test(source=source, codes=codes):
            assert refusals_in(source) == codes
