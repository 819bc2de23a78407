"""Every language says all that annotators' pages say, with the values in place."""

import re
from collections import Counter

import pytest

from app.http.languages import catalogue
from app.http.languages.catalogue import (
    ENGLISH,
    LANGUAGES,
    Message,
    format_localized_number,
    negotiate_language,
    text_direction,
    translate,
    translate_plural,
)
from app.http.languages.refusals import ANNOTATOR_REFUSALS, translate_refusal
from app.http.languages.templates import translate_template_source
from tests.languages.words import collected

OTHERS = [language for language in LANGUAGES if language != ENGLISH]
VALUE = re.compile(r"%\(\w+\)[sd]|%[sd]|{{ \w+ }}|<[^>]+>")
SENTENCE_END = re.compile(r"[.?!。？！؟]\s*")
RUN = "Run `make words` and fill in what it names."


def forms(words):
    return [words] if isinstance(words, str) else [*words]


@pytest.fixture(scope="module")
def everything():
    return {message.id for message in collected() if message.id}


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_says_everything_and_nothing_that_is_gone(language, everything):
    known = {message.id: message for message in catalogue.read_messages_of_language(language) if message.id}
    assert sorted(map(str, everything - known.keys())) == [], RUN
    assert sorted(map(str, known.keys() - everything)) == [], RUN
    assert [english for english, message in known.items() if message.fuzzy or not all(forms(message.string))] == [], RUN


def test_every_language_puts_in_the_same_values_and_the_same_markup(subtests):
    for language in OTHERS:
        with subtests.test(language=language):
            for message in catalogue.read_messages_of_language(language):
                wanted = Counter(VALUE.findall(forms(message.id)[-1]))
                for form in forms(message.string) if message.id else ():
                    found = Counter(VALUE.findall(form))
                    without_number = wanted - Counter({"%(num)s": 1})  # "one set" needs no digit
                    assert found in (wanted, without_number) if message.pluralizable else found == wanted, form


def test_no_translation_says_a_sentence_twice():
    repeated = [
        (language, sentence)
        for language in OTHERS
        for message in catalogue.read_messages_of_language(language)
        for form in forms(message.string or "")
        for sentence, count in Counter(SENTENCE_END.split(form)).items()
        if sentence and count > 1
    ]
    assert repeated == []


def test_no_words_end_an_attribute_or_a_literal_of_a_template(subtests):
    for language in OTHERS:
        with subtests.test(language=language):
            assert [
                m.id
                for m in catalogue.read_messages_of_language(language)
                if m.id and re.search(r'["\\]', "".join(forms(m.string)))
            ] == []


def test_the_language_that_a_browser_likes_best_is_chosen():
    assert negotiate_language("de-AT,de;q=0.9,en;q=0.8") == "de"
    assert negotiate_language("nl, fr;q=0.4, ja;q=0.7, *;q=0.1") == "ja"
    assert negotiate_language("zh-Hans-CN") == "zh"
    assert negotiate_language("en-GB,de;q=0.9") == "en"


def test_who_likes_none_of_ours_or_says_nothing_sensible_reads_english(subtests):
    for accepted in ("", "nl", "*", "de;q=0", ";;;", "de;q=1.5", "x" * 10_000, "de\x00"):
        with subtests.test(accepted=accepted):
            assert negotiate_language(accepted) == ENGLISH


def test_arabic_runs_from_right_to_left_and_the_others_do_not():
    assert [language for language in LANGUAGES if text_direction(language) == "rtl"] == ["ar"]


def test_a_message_is_english_as_it_stands_and_other_languages_fill_in_its_values():
    message = Message(
        "You see one item at a time and place it on a scale from “%(low)s” to “%(high)s”.", low="a", high="b"
    )
    assert message == "You see one item at a time and place it on a scale from “a” to “b”."
    assert translate("de", message) == "Sie sehen jeweils ein Element und setzen es auf eine Skala von „a“ bis „b“."
    assert translate("de", "") == ""


def test_numbers_and_plurals_are_those_of_the_language():
    assert format_localized_number(1234.5, "de") == "1.234,5"
    assert format_localized_number(1234.5, "en") == "1,234.5"
    sets = "%(num)s task done", "%(num)s tasks done"
    assert [translate_plural("de", *sets, count) for count in (1, 2)] == ["1 Aufgabe erledigt", "2 Aufgaben erledigt"]
    assert translate_plural("en", *sets, 1234) == "1,234 tasks done"


def test_a_refusal_speaks_for_itself_in_english_and_by_its_code_elsewhere():
    assert translate_refusal("en", "token_invalid", "My own words.") == "My own words."
    assert translate_refusal("de", "token_invalid", "My own words.").startswith("Der Link dieser Seite ist beschädigt.")
    assert translate_refusal("de", "of_researchers_alone", "My own words.").startswith("Dies wurde abgelehnt.")


def test_the_words_for_refusals_say_what_is_safe_or_what_to_do():
    assert all(words.endswith(".") for words in ANNOTATOR_REFUSALS.values())


def test_messages_of_a_template_are_put_in_before_it_is_compiled():
    source = """{{ _("Submit") if last else x._("Submit") }} {% trans %}by 10, as do
        <kbd>{{ key }}</kbd>{% endtrans %}"""
    assert (
        translate_template_source(source, str.upper)
        == """{{ "SUBMIT" if last else x._("Submit") }} BY 10, AS DO <KBD>{{ KEY }}</KBD>"""
    )
