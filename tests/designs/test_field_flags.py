"""Whether a text has anything to see."""

import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.designs.field_flags import is_blank

EMPTY = {
    "nothing": "",
    "spaces": " \t\r\n\x0b\x0c",
    "no-break spaces": "\xa0\u202f\u2007",
    "wide spaces": "\u2003\u3000\u1680",
    "separators": "\u2028\u2029\x1c\x85",
    "zero-width spaces": "\u200b\u200c\u200d",
    "word joiners": "\u2060\ufeff",
    "soft hyphens": "\xad\xad",
    "directions": "\u200e\u200f\u061c\u202a\u202e\u2066\u2069",
    "fillers of Hangul": "\u3164\uffa0\u115f\u1160",
    "empty braille cells": "\u2800",
    "joiners of graphemes": "\u034f",
    "variation selectors": "\ufe0f\U000e0100\u180b\u180f",
    "vowels of Khmer": "\u17b4\u17b5",
    "tags": "\U000e0020\U000e007f",
    "notes": "\ufff9\ufffa",
}
SEEN = ["a", ".", "0", "\u0301", "\u093e", "\u0600", "\u06dd", "\u2801", "\u3131", "\ue000", "\u200ba", "\u200b x"]


def test_a_text_without_anything_to_see_is_blank(subtests):
    for text in EMPTY.values():
        with subtests.test(text=text):
            assert is_blank(text)


def test_a_text_with_something_to_see_is_not_blank(subtests):
    for text in SEEN:
        with subtests.test(text=text):
            assert not is_blank(text)


BLANK = "\u200b\u3164"


def test_no_setting_that_people_read_looks_empty(subtests):
    for settings in (
        {"name": BLANK},
        {"question": BLANK},
        {"low_label": BLANK},
        {"middle_label": BLANK},
        {"instructions": BLANK},
        {"unjudged_reasons": ["broken", BLANK]},
        {"flag_reasons": [BLANK]},
        {"questions": [f"name: {BLANK}"]},
        {"questions": [f"name: What? | {BLANK} | b"]},
        {"design": "ordinal", "design_settings": {"labels": ["bad", BLANK]}},
        {"design": "categories", "design_settings": {"labels": ["bad", f"{BLANK}: good"]}},
        {"design": "ranking", "design_settings": {"best_label": BLANK}},
        {"design": "magnitude", "design_settings": {"reference": BLANK}},
        {"design": "magnitude", "design_settings": {"reference": "  "}},
        {"criteria": [{"name": BLANK, "question": "a"}, {"name": "b", "question": "b"}]},
        {"criteria": [{"name": "a", "question": BLANK}, {"name": "b", "question": "b"}]},
    ):
        with subtests.test(settings=settings), pytest.raises(ValidationError):
            CampaignSettings.model_validate({"name": "n", "question": "q"} | settings)
