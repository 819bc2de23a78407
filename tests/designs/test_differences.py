"""How two texts differ is marked word by word, and no text makes that slow or changes what is read."""

import re

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from app.designs.content import Content, ItemTexts
from app.designs.word_differences import mark_differing_words_or_none_if_slow


def words_of(marked):
    return Markup(re.sub(r"<span[^>]*>[^<]*</span>|</?(ins|del|mark)>", "", str(marked))).unescape()


def in_marks(kind, marked):
    return re.findall(rf"<{kind}><span[^>]*>[^<]*</span>(.*?)<span", str(marked), re.DOTALL)


def test_differences_from_a_reference_are_what_was_added_and_left_out():
    content = Content(reference="r", differences="reference")
    (item,) = content.render_items([ItemTexts("a <big> cat", None, "a small cat")], {}).items
    shown = re.sub(r'<span class="visually-hidden">([^<]*)</span>', r"\1", item)
    assert shown == "a <del>[left out: small]</del> <ins>[added: &lt;big&gt;]</ins> cat"


def test_differences_between_two_items_mark_the_words_of_each():
    first, second = (
        Content(differences="pair").render_items([ItemTexts("the black cat"), ItemTexts("the cat sat")], {}).items
    )
    assert (in_marks("mark", first), in_marks("mark", second)) == (["black"], ["sat"])
    assert Content(differences="pair").render_items([ItemTexts("a"), ItemTexts("b"), ItemTexts("c")], {}).items == [
        "a",
        "b",
        "c",
    ]


@given(st.text(max_size=60), st.text(max_size=60))
def test_marks_change_no_character(text, other):
    marked = mark_differing_words_or_none_if_slow(text, other)
    assert marked is not None
    assert words_of(marked) == text


def test_indentation_and_blanks_at_the_end_stay_around_marks():
    text = "  def f(x):\n\treturn  x \n\n"
    marked = mark_differing_words_or_none_if_slow(text, "  def f(y):\n\treturn  y \n\n")
    assert words_of(marked) == text
    assert in_marks("mark", marked) == ["x", "x"]


def test_scripts_without_spaces_differ_by_letters():
    assert in_marks("mark", mark_differing_words_or_none_if_slow("我喜歡貓", "我喜歡狗")) == ["貓"]
    assert in_marks("mark", mark_differing_words_or_none_if_slow("ฉันรักแมว", "ฉันรักนก")) == ["แมว"]


def test_accents_and_vowel_signs_stay_with_their_letters():
    assert in_marks("mark", mark_differing_words_or_none_if_slow("un e\u0301te\u0301", "un ete")) == ["e\u0301te\u0301"]
    assert in_marks("mark", mark_differing_words_or_none_if_slow("कहानी अच्छी", "कहानी बुरी")) == ["अच्छी"]


def test_long_texts_that_differ_in_few_words_are_marked():
    words = [f"w{number}" for number in range(12_000)]
    other = [*words[:6_000], "another", *words[6_001:]]
    assert in_marks("mark", mark_differing_words_or_none_if_slow(" ".join(words), " ".join(other))) == ["w6000"]


def test_texts_that_take_long_to_compare_come_without_marks_and_that_is_said():
    long, other = "a b " * 5_000, "b c " * 5_000
    assert mark_differing_words_or_none_if_slow(long, other) is None
    drawn = Content(differences="pair").render_items([ItemTexts(long), ItemTexts(other)], {})
    assert (drawn.items, drawn.skipped_differences) == ([long, other], True)
    assert not Content(differences="pair").render_items([ItemTexts("a"), ItemTexts("b")], {}).skipped_differences
