"""Criteria in the settings: by the form, in a campaign's file, in its copy, and what is refused."""

import pytest
from pydantic import ValidationError

from app.campaigns import campaign_file, form, form_input, form_values, lifecycle, settings_edits
from app.campaigns.settings import CampaignSettings
from app.designs.registry import DESIGNS
from app.errors import Conflict, Invalid
from app.imports import responses_import
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value
from tests.annotation.hits.criteria import criteria_settings
from tests.campaigns.drafts import (
    apply_action,
    create_draft,
    create_launched_campaign,
    import_items,
    import_results,
    replay_is_clean,
)

BOTH = criteria_settings(2)


def settings(**more):
    return CampaignSettings.model_validate({"name": "A", "question": "How good?", "criteria": BOTH} | more)


def test_two_criteria_are_as_they_were_said():
    assert settings().criteria == BOTH
    assert CampaignSettings(name="A", question="B?").criteria == []


def test_a_setting_of_the_way_of_asking_is_kept_as_that_reads_it():
    own = BOTH[1] | {"design_settings": {"reference_value": "50"}}
    assert settings(design="magnitude", criteria=[BOTH[0], own]).criteria[1]["design_settings"] == {
        "reference_value": 50.0
    }


def test_what_cannot_be_asked_is_refused_at_its_field(subtests):
    for more, field, words in (
        ({"criteria": BOTH[:1]}, "criteria", "2 to 5 criteria, or none"),
        ({"criteria": criteria_settings(3) * 2}, "criteria", "at most 5"),
        ({"criteria": [BOTH[0], BOTH[0]]}, "criteria", "a different name"),
        (
            {"criteria": [BOTH[0] | {"name": "caf\u00e9"}, BOTH[1] | {"name": "Cafe\u0301"}]},
            "criteria",
            "a different name",
        ),
        ({"criteria": [BOTH[0], {"name": "x"}]}, "criteria", "required"),
        ({"criteria": [BOTH[0], BOTH[1] | {"name": "a\x00b"}]}, "criteria", "control characters"),
        ({"criteria": [BOTH[0], BOTH[1] | {"name": "a\nb"}]}, "criteria", "one line"),
        ({"criteria": [BOTH[0], BOTH[1] | {"colour": "red"}]}, "criteria", "not permitted"),
        ({"criteria": [BOTH[0], BOTH[1] | {"low_label": "high"}]}, "criteria", "fluency: the two ends"),
        ({"criteria": [BOTH[0], BOTH[1] | {"design_settings": {"x": 1}}]}, "criteria", "fluency: x: "),
        (
            {"criteria": [BOTH[0], BOTH[1] | {"design_settings": {"baseline": "v1"}}], "design": "baseline"},
            "criteria",
            "the same for all criteria",
        ),
        ({"criteria_shown": "grid"}, "criteria_shown", "no grid"),
        ({"criteria_shown": "grid", "design": "rating", "items_per_hit": 6}, "criteria_shown", "not 12"),
        ({"asked_by": "style"}, "asked_by", "no criterion"),
        ({"design": "categories", "rule": "entropy"}, "rule", "several criteria"),
        ({"design": "categories", "rule": "information"}, "rule", "several criteria"),
        (
            {"design": "pairwise", "implied_asked_percent": 10},
            "implied_asked_percent",
            "an answer on one criterion implies nothing",
        ),
        (
            {
                "design": "categories",
                "criteria": [BOTH[0], BOTH[1] | {"design_settings": {"labels": ["a", "b", "c", "d"]}}],
            },
            "update_law",
            "as many labels",
        ),
    ):
        with subtests.test(more=more, field=field, words=words):
            with pytest.raises(ValidationError) as refused:
                settings(**more)
            assert words in str(refused.value)
            assert {error["loc"][0] for error in refused.value.errors()} == {field}


def test_a_grid_has_ten_controls_at_most():
    assert settings(criteria_shown="grid", design="ordinal", items_per_hit=5).criteria_shown == "grid"


def test_the_form_says_criteria_and_reads_them_again():
    labels = {"design_settings": {"labels": ["none", "some", "all"]}}
    told = [BOTH[0] | {"low_label": "nothing"}, BOTH[1] | labels]
    before = settings(design="ordinal", criteria=told, asked_by="fluency", criteria_shown="grid", items_per_hit=2)
    fields = form_values.form_values_of_settings(before)
    assert fields["criteria.0.low_label"] == "nothing"
    assert fields["criteria.1.ordinal.labels"] == "none\nsome\nall"
    sent = {name: text for name, text in fields.items() if text}
    assert form_input.parse_settings_form(sent) == before
    names = [
        field.name
        for section in form.build_form_sections(fields)
        for field in (*section.basic_fields, *section.advanced_fields)
    ]
    assert fields.keys() <= {*names}


def another(name, setting):
    """Return a value other than the default for a setting of a design."""
    if isinstance(setting, bool):
        return not setting
    return [*setting[1:], name] if isinstance(setting, list) else {str: name, float: 7.0}[type(setting)]


def test_what_the_form_shows_of_criteria_reads_back_as_the_same_settings(subtests):
    for design in (design for design in DESIGNS.values() if not design.ticks_criteria):  # a label has no settings
        with subtests.test(design=design):
            usual = design().model_dump(mode="json")
            own = {name: another(name, setting) for name, setting in usual.items()}
            for campaigns in (usual, own):
                for of_criterion in (usual, own, {}):
                    common = {name: campaigns[name] for name in of_criterion if name == "baseline"}
                    told = [BOTH[0] | {"design_settings": of_criterion | common}, BOTH[1] | {"design_settings": {}}]
                    before = settings(
                        design=design.name, design_settings=campaigns, criteria=told, middle_label="so-so"
                    )
                    assert (
                        form_input.parse_settings_form(
                            {name: text for name, text in form_values.form_values_of_settings(before).items() if text}
                        )
                        == before
                    )


def test_a_criterion_has_a_middle_label_or_the_campaigns():
    with pytest.raises(ValidationError):
        settings(criteria=[BOTH[0] | {"middle_label": None}, BOTH[1]])


def test_a_criterion_whose_fields_are_empty_is_none():
    sent = {"name": "A", "question": "B?", "low_label": "low", "high_label": "high"}
    sent |= {"criteria.0.name": "", "criteria.1.name": "x", "criteria.1.question": "X?"}
    sent |= {"criteria.4.name": "y", "criteria.4.question": "Y?", "asked_by": "y"}
    assert [one["name"] for one in form_input.parse_settings_form(sent).criteria] == ["x", "y"]
    assert (
        form_input.parse_settings_form({name: text for name, text in sent.items() if "criteria" not in name}).asked_by
        == ""
    )


def test_what_is_wrong_is_said_beside_its_field():
    sent = {"name": "A", "question": "B?", "low_label": "low", "high_label": "high"}
    sent |= {"criteria.0.name": "x", "criteria.0.question": "X?", "criteria.2.name": "y"}
    with pytest.raises(ValidationError) as refused:
        form_input.parse_settings_form(sent)
    assert form_input.error_message_by_form_field(refused.value, sent) == {
        "criteria.2.question": "Please fill this in."
    }
    sent |= {"criteria.2.question": "Y?", "criteria.2.name": "X"}
    with pytest.raises(ValidationError) as refused:
        form_input.parse_settings_form(sent)
    assert [*form_input.error_message_by_form_field(refused.value, sent)] == ["criteria.2.name"]
    assert form_input.settings_of_form_with_defaults_for_errors(sent).criteria == []


def test_what_is_wrong_with_the_second_criterion_is_said_beside_its_field(subtests):
    for more, field in (
        ({"criteria.2.low_label": "high"}, "criteria.2.low_label"),
        ({"criteria.2.high_label": "low"}, "criteria.2.high_label"),
        ({"design": "ordinal", "criteria.2.ordinal.labels": "one"}, "criteria.2.ordinal.labels"),
        ({"design": "baseline", "criteria.2.baseline.baseline": "v1"}, "criteria.2.name"),
    ):
        with subtests.test(more=more, field=field):
            sent = {"name": "A", "question": "B?", "low_label": "low", "high_label": "high"}
            sent |= {f"criteria.{k}.{name}": f"{name} {k}" for k in (0, 2) for name in ("name", "question")}
            with pytest.raises(ValidationError) as refused:
                form_input.parse_settings_form(sent | more)
            assert [*form_input.error_message_by_form_field(refused.value, sent | more)] == [field]


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff \u2060"])
def test_a_name_that_nobody_can_see_is_refused(unseen):
    with pytest.raises(ValidationError, match="must contain visible text"):
        settings(criteria=[BOTH[0] | {"name": unseen}, BOTH[1]])


def test_a_campaign_file_has_them_and_a_wrong_name_is_told_with_its_line():
    before = settings(design="ordinal", asked_by="fluency")
    text = campaign_file.format_campaign_file(before)
    assert campaign_file.parse_campaign_file(text.encode(), "again.yaml").content.settings == before
    with pytest.raises(Invalid) as refused:
        campaign_file.parse_campaign_file(
            text.replace("fluency, question:", "fluency, qestion:").encode(), "again.yaml"
        )
    assert "Did you mean “criteria.question”?" in refused.value.message


async def test_a_copy_has_the_criteria_and_after_the_launch_they_stay(engine):
    campaign = await create_launched_campaign(engine, criteria=BOTH, asked_by="fluency")
    async with engine.begin() as connection:
        copied = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    assert (copied.criteria_settings, copied.asked_criterion) == (BOTH, 1)
    async with engine.begin() as connection:
        with pytest.raises(Conflict) as refused:
            await settings_edits.store_changed_settings_or_refuse(
                connection, campaign.slug, lambda it: it.model_copy(update={"criteria": []})
            )
    assert refused.value.code == "not_a_draft"
    async with engine.begin() as connection:
        edited = await settings_edits.store_changed_settings_or_refuse(
            connection, copied.slug, lambda it: it.model_copy(update={"criteria": [], "asked_by": ""})
        )
    assert (edited.criteria_settings, edited.asked_criterion) == ([], 0)


HEAD = "hit,annotator,item,value,criterion\n"
ANSWER = "h1,ann,v0,10,adequacy\nh1,ann,v1,20,adequacy\nh1,ann,v1,40,fluency\nh1,ann,v0,30,fluency\n"


async def test_answers_by_each_criterion_are_imported_once(engine):
    campaign = await create_launched_campaign(engine, criteria=BOTH, update_law="easl-aware")
    more = ANSWER.replace("h1,ann", "h2,bob").replace("10", "15")
    assert (await import_results(engine, campaign, HEAD + ANSWER)).responses == 1
    done = await import_results(engine, campaign, HEAD + ANSWER + more)
    assert (done.responses, done.known, done.items) == (1, 1, 2)
    assert await fetch_rows(engine, "SELECT items, values FROM responses ORDER BY seq") == [
        ([0, 1], [10, 20, 30, 40]),
        ([0, 1], [15, 20, 30, 40]),
    ]
    assert await replay_is_clean(engine, campaign.slug)
    with pytest.raises(Conflict) as refused:
        await import_results(engine, campaign, HEAD + ANSWER.replace("40", "41"))
    assert refused.value.code == "assignment_known"


async def test_an_imported_hit_lasts_from_its_first_criterion_to_its_last(engine):
    campaign = await create_launched_campaign(engine, criteria=BOTH)
    times = {"adequacy": "2026-01-02T10:00Z,2026-01-02T10:05Z", "fluency": "2026-01-02T09:00Z,2026-01-02T11:00Z"}
    lines = [f"{line},{times[line.rsplit(',')[-1]]}" for line in ANSWER.splitlines()]
    head = HEAD.strip() + ",issued_at,submitted_at"
    await import_results(engine, campaign, "\n".join([head, *lines]))
    spans = "SELECT h.issued_at, r.received_at FROM hits h JOIN responses r ON r.hit_id = h.id"
    hours = [(start.hour, end.hour) for start, end in await fetch_rows(engine, spans)]
    assert hours == [(9, 11)]


async def test_a_file_that_does_not_say_all_is_refused_and_nothing_is_stored(engine, subtests):
    for content, code, words in (
        (HEAD + ANSWER.replace("fluency", "style"), "criterion_unknown", "does not ask about “style”"),
        (HEAD + ANSWER.replace("fluency", ""), "criterion_unknown", "criterion is empty"),
        ("hit,annotator,item,value\nh1,ann,v0,10\n", "criterion_unknown", "no column criterion"),
        (HEAD + "".join(ANSWER.splitlines(keepends=True)[:2]), "criteria_missing", "no answer for"),
        (HEAD + ANSWER.replace("v0,30", "v2,30"), "criteria_differ", "different items"),
        (
            "WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\nW1,v0,v1,1,2\n",
            "criteria_not_imported",
            "cannot say which criterion",
        ),
    ):
        with subtests.test(content=content, code=code, words=words):
            campaign = await create_launched_campaign(engine, criteria=BOTH)
            with pytest.raises(Invalid) as refused:
                await import_results(engine, campaign, content)
            assert refused.value.code == code
            assert words in refused.value.message
            assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0


async def test_the_example_of_a_file_can_be_imported(engine):
    campaign = await create_launched_campaign(engine, criteria=BOTH)
    content = responses_import.example_response_csv_or_empty(campaign, [f"v{k}" for k in range(campaign.items_per_hit)])
    assert content.startswith("hit,annotator,item,value,criterion\n")
    assert (await import_results(engine, campaign, content)).responses == 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_campaign_without_criteria_takes_no_answers_by_one(engine):
    campaign = await create_launched_campaign(engine)
    with pytest.raises(Invalid) as refused:
        await import_results(engine, campaign, HEAD + ANSWER)
    assert refused.value.code == "criterion_unknown"


async def test_what_is_marked_not_applicable_is_so_by_every_criterion(engine):
    campaign = await create_draft(engine, criteria=BOTH, cannot_be_judged=True)
    await import_items(engine, campaign, "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6)))
    campaign = await apply_action(engine, campaign)
    head = "hit,annotator,item,value,criterion,not_applicable,reason\n"
    rows = "h1,ann,v0,10,adequacy,,\nh1,ann,v1,,adequacy,true,\nh1,ann,v0,30,fluency,,\nh1,ann,v1,{},fluency,{},{}\n"
    with pytest.raises(Invalid) as refused:
        await import_results(engine, campaign, head + rows.format("40", "", ""))
    assert (refused.value.code, "but not for another" in refused.value.message) == ("criteria_differ", True)
    with pytest.raises(Invalid) as refused:
        await import_results(engine, campaign, head + rows.format("", "true", "cut off"))
    assert (refused.value.code, "for different reasons" in refused.value.message) == ("criteria_differ", True)
    await import_results(engine, campaign, head + rows.format("", "true", ""))
    assert await fetch_value(engine, "SELECT values::text FROM responses") == "{10,NaN,30,NaN}"
    assert await fetch_rows(engine, "SELECT number, unjudged FROM current_posteriors WHERE unjudged > 0") == [(1, 1)]
    assert await replay_is_clean(engine, campaign.slug)


def test_questions_of_criteria_have_room_for_long_texts():
    sections = form.build_form_sections({})
    fields = [field for section in sections for own in section.fields_by_criterion.values() for field in own]
    kinds = {field.name: field.kind for field in fields}
    assert kinds["criteria.0.question"] == "area"
    assert kinds["criteria.0.name"] == "line"
