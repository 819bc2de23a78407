"""Comments and flags beside an answer, as forms send them and as they are stored."""

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.campaigns.settings import CampaignSettings
from app.designs.answer import Answer, Form
from app.designs.criteria import submission_of_each_criterion_or_refuse
from app.designs.extra_json import answer_extra_json_or_none
from app.designs.remarks import (
    MAX_COMMENT_CHARS,
    Remark,
    drop_unoffered_remarks,
    form_fields_of_stored_remarks,
    parse_remarks_by_subject,
    refuse_unoffered_remarks,
    stored_remarks_or_empty,
)
from app.errors import Invalid
from tests.unsaved import unsaved

REASONS = ["It is broken", "It is offensive"]
ITEMS = [3, 17]


def asking(comment_on="both", flag_on="both", flag_reasons=REASONS):
    return unsaved(comment_on=comment_on, flag_on=flag_on, flag_reasons=flag_reasons)


def test_what_a_form_says_of_its_items_and_of_the_hit():
    form = {"comment-3": " Half a sentence. ", "flag-17": REASONS[0], "comment-hit": "All alike.", "comment-99": "no"}
    assert parse_remarks_by_subject(form, ITEMS) == {
        "hit": Remark("All alike."),
        "3": Remark("Half a sentence."),
        "17": Remark(flag=REASONS[0]),
    }


def test_empty_fields_say_nothing_and_store_nothing():
    form = {"comment-3": " \r\n", "flag-3": "", "flag-17": " ", "comment-hit": ""}
    assert parse_remarks_by_subject(form, ITEMS) == {}
    assert answer_extra_json_or_none(asking(), Answer({}), 1) is None


def test_a_comment_keeps_its_lines_and_its_letters_and_loses_what_nobody_sees():
    woman_writing = "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}"
    form = {"comment-hit": f"one\r\ntwo\x00\x1b\x7f {woman_writing}\ud800"}
    assert parse_remarks_by_subject(form, ITEMS)["hit"].comment == f"one\ntwo {woman_writing}"


def test_a_comment_is_as_long_as_its_field():
    longest = "\r\n".join("é" for _ in range(MAX_COMMENT_CHARS // 2))  # browsers count the end of a line once
    assert parse_remarks_by_subject({"comment-3": longest}, ITEMS)["3"].comment == longest.replace("\r", "")
    with pytest.raises(Invalid) as refused:
        parse_remarks_by_subject({"comment-3": "é" * (MAX_COMMENT_CHARS + 1)}, ITEMS)
    assert refused.value.code == "comment_too_long"
    assert f'maxlength="{MAX_COMMENT_CHARS}"' in Path("templates/_remarks.html").read_text()


ALL = {"hit": Remark("a", REASONS[1]), "3": Remark("b", REASONS[0]), "17": Remark("c", "something else")}


def test_what_is_not_asked_for_is_left_out(subtests):
    for settings, kept in (
        ({}, {"hit": Remark("a", REASONS[1]), "3": Remark("b", REASONS[0]), "17": Remark("c")}),
        ({"comment_on": "HIT", "flag_on": "items"}, {"hit": Remark("a"), "3": Remark(flag=REASONS[0])}),
        ({"comment_on": "none", "flag_on": "HIT"}, {"hit": Remark(flag=REASONS[1])}),
        ({"comment_on": "items", "flag_on": "none"}, {"3": Remark("b"), "17": Remark("c")}),
        ({"comment_on": "none", "flag_on": "none"}, {}),
    ):
        with subtests.test(settings=settings, kept=kept):
            assert drop_unoffered_remarks(asking(**settings), ALL) == kept


def test_where_no_reason_is_asked_for_a_flag_has_none():
    campaign = asking(flag_reasons=[])
    assert drop_unoffered_remarks(campaign, {"3": Remark(flag="wrong")}) == {"3": Remark(flag="")}
    assert stored_remarks_or_empty({"3": Remark(flag="")}) == {"remarks": {"3": {"flag": ""}}}


def test_a_program_is_told_what_is_not_asked_for(subtests):
    for settings, remarks, code in (
        ({"comment_on": "items"}, {"hit": Remark("a")}, "remark_not_offered"),
        ({"comment_on": "HIT"}, {"3": Remark("a")}, "remark_not_offered"),
        ({"flag_on": "HIT"}, {"3": Remark(flag=REASONS[0])}, "remark_not_offered"),
        ({"flag_on": "items"}, {"hit": Remark(flag=REASONS[0])}, "remark_not_offered"),
        ({}, {"3": Remark(flag="tired")}, "reason_unknown"),
        ({"flag_reasons": []}, {"3": Remark(flag="tired")}, "reason_unknown"),
    ):
        with subtests.test(settings=settings, remarks=remarks, code=code):
            with pytest.raises(Invalid) as refusal:
                refuse_unoffered_remarks(asking(**settings), remarks)
            assert refusal.value.code == code


def test_what_was_stored_fills_the_form_that_it_was_said_in():
    form = {"comment-hit": "a", "flag-3": REASONS[1], "comment-17": "b", "flag-17": "wrong"}
    said = parse_remarks_by_subject(form, ITEMS)
    stored = stored_remarks_or_empty(drop_unoffered_remarks(asking(), said) | {"17": Remark("b", "")})["remarks"]
    assert form_fields_of_stored_remarks(stored) == form


def test_of_several_criteria_each_part_has_the_same_remarks():
    criteria = [{"name": "adequacy", "question": "?"}, {"name": "fluency", "question": "?"}]
    campaign = replace(asking(), criteria_settings=criteria)
    form = Form({"c0-score-3": "5", "c1-score-3": "6", "flag-3": "x", "comment-hit": "y"}, "form")
    found = [
        parse_remarks_by_subject(part.fields, ITEMS)
        for part in submission_of_each_criterion_or_refuse(form, campaign)
        if isinstance(part, Form)
    ]
    assert found == [{"hit": Remark("y"), "3": Remark(flag="x")}] * 2


def test_reasons_are_lines_of_a_form_and_each_is_there_once():
    settings = CampaignSettings.model_validate({"name": "a", "question": "b", "flag_reasons": "One\n\n Two "})
    assert settings.flag_reasons == ["One", "Two"]
    assert (settings.comment_on, settings.flag_on) == ("none", "none")
    with pytest.raises(ValidationError):
        CampaignSettings(name="a", question="b", flag_reasons=["One", "One"])
