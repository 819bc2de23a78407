"""Several labels: what a form without a tick means, and which labels cannot be asked for."""

import pytest
from pydantic import ValidationError

from app.campaigns import campaign_file, form, form_input, form_values
from app.campaigns.lifecycle import campaign_of_unsaved_settings
from app.campaigns.setting_types import settings_with_changes
from app.campaigns.settings import CampaignSettings
from app.designs.answer import Form
from app.designs.criteria import submission_of_each_criterion_or_refuse
from app.designs.several_labels import MAX_LABELS, SeveralLabels
from app.errors import Invalid

LABELS = ["joy: happy or pleased", "sadness", "anger"]
ASKED = {"question": "Which emotions?", "design": "several_labels", "design_settings": {"labels": LABELS}}


def settings(**more):
    return CampaignSettings.model_validate(ASKED | more)


def sent(fields, items=(4, 9)):
    """Return the values of the items by each label, as the form says them."""
    campaign = campaign_of_unsaved_settings(settings(items_per_hit=len(items)))
    parts = submission_of_each_criterion_or_refuse(Form(fields, source="form"), campaign)
    return [criterion.parse_answer(part, items)[1] for criterion, part in zip(campaign.criteria, parts, strict=True)]


def test_a_label_without_a_tick_is_a_no_where_another_has_one():
    assert sent({"c0-score-00": "1", "c2-score-00": "1", "none-01": "1"}) == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]


def test_an_item_without_any_tick_has_no_answer():
    with pytest.raises(Invalid) as refused:
        sent({"c0-score-00": "1"})
    assert (refused.value.code, refused.value.details["missing"]) == ("scores_missing", [2])
    assert str(refused.value).startswith("Not all items have an answer yet: 2 of 2.")


def test_none_of_these_and_a_label_at_once_are_refused():
    with pytest.raises(Invalid) as refused:
        sent({"c0-score-00": "1", "none-00": "1", "none-01": "1"})
    assert refused.value.code == "answer_impossible"


def test_an_item_that_cannot_be_judged_may_have_been_ticked_before():
    campaign = campaign_of_unsaved_settings(settings(cannot_be_judged=True, items_per_hit=2))
    fields = {"c0-score-00": "1", "none-00": "1", "unjudged-00": "It is broken or incomplete", "none-01": "1"}
    parts = submission_of_each_criterion_or_refuse(Form(fields, source="form"), campaign)
    values = [
        criterion.parse_answer(part, [4, 9])[0].values for criterion, part in zip(campaign.criteria, parts, strict=True)
    ]
    assert values == [{9: 0.0}] * 3


def test_only_a_page_with_labels_is_told_to_tick_them():
    design = SeveralLabels()
    assert "Tick" not in str(design.missing_values_error([1], 2))
    assert "Tick every label" in str(SeveralLabels(labels=("joy", "fear")).missing_values_error([1], 2))


def test_values_that_a_program_sends_in_a_form_are_kept():
    assert sent({"c0-score-00": "0", "c1-score-00": "0", "none-01": "1"}) == [[0.0, 0.0]] * 3
    with pytest.raises(Invalid) as refused:
        sent({"c0-score-00": "2", "none-01": "1"})
    assert refused.value.code == "score_out_of_range"


def test_how_an_answer_came_about_is_known_of_each_label():
    campaign = campaign_of_unsaved_settings(settings())
    form_fields = {"c1-score-00": "1", "changes-00": "3", "input_kind-00": "touch"}
    parts = submission_of_each_criterion_or_refuse(Form(form_fields, source="form"), campaign)
    answers = [criterion.parse_answer(part, [4])[0] for criterion, part in zip(campaign.criteria, parts, strict=True)]
    assert [(answer.touches[4].changes, answer.touches[4].input_kind) for answer in answers] == [(3, "touch")] * 3


def test_easel_makes_a_criterion_of_each_label():
    assert settings().criteria == [
        {"name": "joy", "question": "happy or pleased"},
        {"name": "sadness", "question": "Which emotions?"},
        {"name": "anger", "question": "Which emotions?"},
    ]
    many = [f"label {k}" for k in range(MAX_LABELS)]
    assert [one["name"] for one in settings(design_settings={"labels": many}).criteria] == many


def test_labels_that_cannot_be_asked_for_are_refused_at_their_field(subtests):
    for labels, words in (
        (["joy"], "give 2 to 12 labels"),
        ([""], "give 2 to 12 labels, one per line"),
        ([f"label {k}" for k in range(MAX_LABELS + 1)], "at most 12"),
        (["joy", "Joy "], "only once"),
        (["caf\u00e9", "cafe\u0301"], "only once"),
        (["joy", "x" * 81], "1 to 80 characters"),
        (["joy", ": happy"], "1 to 80 characters"),
        (["joy", "x" * 401], "at most 400 characters"),
        (["joy", "a\nb"], "one line"),
        (["joy", "\u200b"], "visible text"),
        (["joy", "None of these"], "annotators can always choose it"),
        (["joy", "Keines davon"], "annotators can always choose it"),
        (["joy", "joy\u200b"], "each label can appear only once"),
        (["joy", "j\u00adoy"], "each label can appear only once"),
        (["joy:", "fear"], "leave out the colon at its end"),
    ):
        with subtests.test(labels=labels, words=words):
            with pytest.raises(ValidationError) as refused:
                settings(design_settings={"labels": labels})
            assert words in str(refused.value)
            assert {error["loc"][0] for error in refused.value.errors()} == {"design_settings"}


def test_criteria_besides_the_labels_are_refused(subtests):
    two = [{"name": name, "question": "Is it?"} for name in ("good", "bad")]
    own = [two[0], two[1] | {"design_settings": {"labels": ["a", "b"]}}]
    for more, words in (
        ({"criteria": two}, "leave the criteria empty"),
        ({"criteria": own, "design_settings": {}}, "no settings of its own"),
        ({"criteria": two[:1], "design_settings": {}}, "give 2 to 12"),
    ):
        with subtests.test(words=words):
            with pytest.raises(ValidationError) as refused:
                settings(**more)
            assert words in str(refused.value)
            assert {error["loc"][0] for error in refused.value.errors()} == {"criteria"}


def test_other_labels_or_another_question_make_other_criteria():
    stored = settings(asked_by="anger").model_dump()
    again = CampaignSettings.model_validate(settings_with_changes(stored, {"question": "What do you feel?"}))
    assert again.criteria[1]["question"] == "What do you feel?"
    changed = {"design_settings": {"labels": ["fear", "anger"]}}
    again = CampaignSettings.model_validate(settings_with_changes(stored, changed))
    assert [one["name"] for one in again.criteria] == ["fear", "anger"]
    another: dict[str, object] = {"design": "slider", "design_settings": {}, "asked_by": "", "items_per_hit": None}
    assert CampaignSettings.model_validate(settings_with_changes(stored, another)).criteria == []


def test_the_form_has_the_labels_and_no_criteria():
    before = settings(asked_by="anger")
    fields = {name: text for name, text in form_values.form_values_of_settings(before).items() if text}
    assert fields["several_labels.labels"] == "\n".join(LABELS)
    assert not any(name.startswith("criteria.") for name in fields)
    assert form_input.parse_settings_form(fields) == before
    assert form_input.parse_settings_form(fields | {"criteria.0.name": "of another design"}) == before
    (deciding,) = [
        field
        for section in form.build_form_sections(fields)
        for field in section.all_fields
        if field.name == "asked_by"
    ]
    assert list(deciding.choices) == ["", "joy", "sadness", "anger"]


def test_a_form_without_labels_says_so_at_their_field():
    fields = {"question": "Which?", "name": "A", "design": "several_labels", "several_labels.labels": " \n"}
    with pytest.raises(ValidationError) as refused:
        form_input.parse_settings_form(fields)
    messages = form_input.error_message_by_form_field(refused.value, fields)
    assert messages == {"several_labels.labels": "Give 2 to 12 labels, one per line."}


def test_an_unfinished_form_is_tried_with_labels_to_replace():
    fields = {"question": "Which?", "name": "A", "design": "several_labels", "several_labels.labels": "joy\njoy"}
    for labels in ("", "joy\njoy"):
        unfinished = form_input.settings_of_form_with_defaults_for_errors(fields | {"several_labels.labels": labels})
        assert [one["name"] for one in unfinished.criteria] == ["first label", "second label"]


def test_a_campaign_file_has_the_labels_alone():
    before = settings(name="Emotions")
    text = campaign_file.format_campaign_file(before)
    assert "criteria:" not in text
    assert campaign_file.parse_campaign_file(text.encode(), "again.yaml").content.settings == before


def test_without_labels_and_criteria_the_question_is_answered_by_yes_or_no():
    alone = settings(design_settings={})
    assert alone.criteria == []
    assert list(SeveralLabels().classes) == ["no", "yes"]


def test_labels_that_are_alike_are_refused_where_the_form_shows_it(subtests):
    for design in ("several_labels", "categories", "ordinal"):
        with subtests.test(design=design):
            fields = {"question": "Which?", "name": "A", "design": design, f"{design}.labels": "joy\njoy"}
            with pytest.raises(ValidationError) as refused:
                form_input.parse_settings_form(fields)
            assert [*form_input.error_message_by_form_field(refused.value, fields)] == [f"{design}.labels"]
