"""Nothing that annotators read stands in a template or a script unmarked."""

import re
from pathlib import Path

from app.http.languages.templates import GETTEXT_LITERAL, NGETTEXT_CALL, TRANS_BLOCK
from app.http.templating import english_environment

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted(path for path in (ROOT / "templates").rglob("*.html") if "admin" not in path.parts)
SCRIPTS = [
    ROOT / "static/hit.js",
    *sorted((ROOT / "static/hit").rglob("*.js")),
    *sorted((ROOT / "static/designs").rglob("*.js")),
]
NAMES = {"Easel", "Enter", "Ctrl", "Shift", "Tab", "Home", "End", "Escape", "Delete"}  # of keys, and our own
READ = re.compile(r"""\b(?:aria-label|title|placeholder|alt|data-again|data-announce)="([^"]*)\"""")
WORD = re.compile(r"[^\W\d_]{2,}")
# In a script, what is shown, said or offered as it stands: a sentence between these and its quotes.
SENTENCE = r"""(["`])((?:(?!\1).)*[a-z]{2,} [a-z]{2,}(?:(?!\1).)*)\1"""
SAID = re.compile(r"(?:announce|textContent =|say|ariaLabel =|new Option)\s*\(?[^;\n]*?" + SENTENCE)
SENTENCE_OF_TWO = re.compile(r"[a-z]{2,} [a-z]{2,}")


def without_messages(source):
    source = TRANS_BLOCK.sub("", re.sub(r"{#.*?#}", "", source, flags=re.DOTALL))
    return NGETTEXT_CALL.sub("ngettext(", GETTEXT_LITERAL.sub("0", source))


def read_by_people(source):
    """The texts and the attributes of a template that people see or hear, and the sentences in its expressions."""
    source = without_messages(source)
    literals = [value for _, kind, value in english_environment.lex(source) if kind == "string"]
    bare = re.sub(r"{{.*?}}|{%.*?%}", " ", source, flags=re.DOTALL)
    text = re.sub(r"<script.*?</script>|<svg.*?</svg>|<[^>]*>|[\w-]+=\"[^\"]*\"", " ", bare, flags=re.DOTALL)
    sentences = filter(SENTENCE_OF_TWO.search, literals)
    return [
        word for part in (text, *READ.findall(bare), *sentences) for word in WORD.findall(part) if word not in NAMES
    ]


def test_every_word_of_a_template_is_marked(subtests):
    for path in TEMPLATES:
        with subtests.test(path=path):
            assert read_by_people(path.read_text()) == []


def test_every_sentence_of_a_script_is_marked(subtests):
    for path in SCRIPTS:
        with subtests.test(path=path):
            source = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
            source = re.sub(r"\bwords\(\s*([\"`])(?:(?!\1).)*\1", "words(0", source)
            assert [found[1] for found in SAID.findall(source)] == []


def test_what_is_not_marked_is_found(subtests):
    for source in (
        "<p>Unmarked</p>",
        '<b aria-label="Say this">',
        "{{ 'one thing' if x }}",
        "{% if x %}Left{% endif %}",
        '<p title="No">',
    ):
        with subtests.test(source=source):
            assert read_by_people(source)
            assert not read_by_people(
                '<p>{% trans %}A <b>word</b>{% endtrans %} {{ _("more words") }} {{ x.y }} <kbd>Tab</kbd></p>'
            )
