"""A campaign as one file: what it may say, how it is refused, and that it makes an equal campaign."""

import io
import json
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.campaigns import lifecycle
from app.campaigns.campaign_file import (
    MAX_ITEMS_IN_CAMPAIGN_FILE,
    CampaignFile,
    format_campaign_file,
    parse_campaign_file,
)
from app.campaigns.settings import CampaignSettings
from app.designs.field_flags import is_omitted_from_campaign_files
from app.designs.registry import DESIGNS
from app.errors import Invalid, NotFound, TooLarge
from app.imports import campaign_file_io
from app.imports.campaign_zip import ItemTable, SentCampaign
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.toys import register
from tests.toys.smiley import Smiley

ROOT = Path(__file__).parents[2]
START = "name: Verbs\nquestion: How often?\n"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


def settings(text, **given_):
    return parse_campaign_file(text.encode(), "c.yaml", given_).content.settings


def mistakes(text, **given_):
    with pytest.raises(Invalid) as refusal:
        parse_campaign_file(text.encode(), "c.yaml", given_)
    assert refusal.value.code == "campaign_file_invalid"
    assert json.dumps(refusal.value.details)
    return {(mistake["line"], mistake["field"]): mistake["message"] for mistake in refusal.value.details["mistakes"]}


# What it may say


def test_a_name_and_a_question_are_enough():
    assert settings(START) == CampaignSettings(name="Verbs", question="How often?")


def test_a_label_may_be_a_word_that_some_yaml_takes_for_something_else():
    found = settings(START + "low_label: no\nmiddle_label: 12:30\nhigh_label: on\npay: 1_0\n")
    assert (found.low_label, found.middle_label, found.high_label, found.pay) == ("no", "12:30", "on", "1_0")


def test_numbers_and_switches_are_read_as_they_are_meant():
    found = settings(START + "show_numbers: no\nrepeat_items: Yes\nseed: 012\nhits_per_iteration: 1_000\ngamma: 1e-1\n")
    assert (found.show_numbers, found.repeat_items, found.seed) == (False, True, 12)
    assert (found.hits_per_iteration, found.gamma) == (1000, 0.1)


def test_points_of_a_scale_may_be_numbers():
    found = settings(START + "design: ordinal\ndesign_settings: {labels: [1, 2, 3]}\n")
    assert found.design_settings == {"labels": ["1", "2", "3"]}


def test_an_empty_setting_is_left_to_its_default():
    assert settings(START + "items_per_hit:\ninstructions:\nprior:\n") == settings(START)


def test_json_is_a_campaign_file_too():
    assert settings('{"name": "Verbs", "question": "How often?", "prior": [2, 3]}').prior == [2.0, 3.0]


def test_what_the_file_says_of_itself_is_no_setting():
    about = "about: {title: Verbs, description: How often verbs are used.}\n"
    assert settings(about + START) == settings(START)


def test_settings_that_are_given_stand_in_the_place_of_the_file_s():
    assert settings(START + "seed: x\n", seed=5, name="Other") == settings(START, seed=5, name="Other")


# How it is refused


def test_all_mistakes_are_told_at_once_each_with_its_line():
    found = mistakes(
        "name: Verbs\nquesion: How often?\ndesign: ordinal\ndesign_settings:\n  labels:\n  - low\n  - ''\n  lables: "
        "[a, b]\njudgments_per_item: 12:30\nseed: 0x10\nshow_numbers: perhaps\nname: Again\n"
    )
    assert found == {
        (1, "question"): "Please fill this in.",
        (2, "quesion"): "There is no setting with this name. Did you mean “question”?",
        (7, "design_settings.labels.1"): "This should have at least 1 character.",
        (8, "design_settings.lables"): "There is no setting with this name. Did you mean “design_settings.labels”?",
        (9, "judgments_per_item"): "Enter a whole number.",
        (10, "seed"): "Enter a whole number.",
        (11, "show_numbers"): "Enter yes or no.",
        (12, "name"): "This name appears twice, first on line 1.",
    }


def test_the_message_says_all_of_it_in_the_order_of_the_lines():
    with pytest.raises(Invalid, match=r"^c.yaml has 2 mistakes; nothing was created. Line 1, question: .* Line 2, a: "):
        parse_campaign_file(b"name: Verbs\na: 1\n", "c.yaml")


def test_for_a_name_that_is_not_known_the_nearest_is_offered(subtests):
    for line, meant in (
        ("design: ordinal\nlabels: [a, b]", "design_settings.labels"),
        ("item_per_hit: 3", "items_per_hit"),
        ("Gamma: 3", "gamma"),
        ("items: {row: []}", "items.rows"),
    ):
        with subtests.test(line=line, meant=meant):
            assert any(f"Did you mean “{meant}”?" in message for message in mistakes(f"{START}{line}\n").values())


def test_a_name_like_no_other_is_told_as_such():
    assert mistakes(START + "zzz: 1\n") == {(3, "zzz"): "There is no setting with this name."}


def test_a_design_that_is_not_there_is_one_mistake():
    assert [*mistakes(START + "design: slidr\n")] == [(3, "design")]


def test_a_mistake_is_told_at_the_nearest_line(subtests):
    for lines, place in (
        ("design: slider\ndesign_settings: {labels: [a]}", (4, "design_settings.labels")),
        ("prior: [0, 1]", (3, "prior")),
        ("low_label: high", (1, "high_label")),
        ("items: {file: a, rows: [{id: 1}]}", (3, "items")),
        ("items: {rows: []}", (3, "items.rows")),
        ("about: {title: x}", (3, "about.description")),
        ("design_settings: 3", (3, "design_settings")),
    ):
        with subtests.test(lines=lines, place=place):
            assert place in mistakes(f"{START}{lines}\n")


def test_a_mistake_in_an_option_is_told_at_the_option():
    with pytest.raises(Invalid, match="--items-per-hit: Enter a whole number"):
        parse_campaign_file(START.encode(), "c.yaml", {"items_per_hit": "x"})


def test_of_many_mistakes_the_first_are_told():
    with pytest.raises(Invalid, match=r"has 50,000 mistakes.* And 49,980 more") as refusal:
        parse_campaign_file((START + "".join(f"n{k}: 1\n" for k in range(50_000))).encode(), "c.yaml")
    assert len(refusal.value.details["mistakes"]) == 20


# There and back


def of_schema(schema, definitions):
    """Values that a setting might have, by its JSON schema; not all of them need be possible."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return st.one_of([of_schema(one, definitions) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("type") in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1000))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 10**9))
        return (st.integers if schema["type"] == "integer" else st.floats)(low, high)
    if schema.get("type") == "array":
        return of_array(schema, definitions)
    if schema.get("type") == "object":
        return of_object(schema, definitions)
    plain = {"boolean": st.booleans(), "null": st.none(), "string": TEXTS | st.sampled_from(["no", "1_0", "null", "x"])}
    return plain[schema["type"]]


def of_array(schema, definitions):
    if "prefixItems" in schema:  # of a tuple
        return st.tuples(*(of_schema(one, definitions) for one in schema["prefixItems"])).map(list)
    return st.lists(of_schema(schema["items"], definitions), min_size=1, max_size=4)


def of_object(schema, definitions=None):
    known = schema.get("$defs", definitions or {})
    optional = {name: of_schema(one, known) for name, one in schema.get("properties", {}).items()}
    return st.fixed_dictionaries({}, optional=optional)


OF_CAMPAIGNS = of_object(CampaignSettings.model_json_schema())
OF_DESIGNS = {name: of_object(design.model_json_schema()) for name, design in (DESIGNS | {"smiley": Smiley}).items()}


def possible(design, drawn, own):
    """Settings of a design with as many of the drawn ones as go together."""
    chosen = {"name": "Verbs", "question": "How often?", "design": design, "design_settings": {}}
    for name, one in [*drawn.items(), *own.items()]:
        place = "design_settings" if name in own else name
        further = chosen | {place: chosen[place] | {name: one} if name in own else one}
        with suppress(ValidationError):
            CampaignSettings.model_validate(further)
            chosen = further
    return CampaignSettings.model_validate(chosen)


@pytest.fixture(scope="module")
def toys():
    with pytest.MonkeyPatch.context() as monkeypatch:
        register(monkeypatch.setitem)
        yield


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("design", OF_DESIGNS)
@hypothesis.settings(max_examples=25)
@given(data=st.data())
def test_what_is_written_of_any_settings_makes_equal_ones(design, data):
    kept = {name for name, field in CampaignSettings.model_fields.items() if not is_omitted_from_campaign_files(field)}
    drawn = {name: it for name, it in data.draw(OF_CAMPAIGNS).items() if name in kept and not name.startswith("design")}
    chosen = possible(design, drawn, data.draw(OF_DESIGNS[design]))
    text = format_campaign_file(chosen)
    assert settings(text) == chosen
    assert CampaignSettings.model_validate(yaml.safe_load(text)) == chosen


def test_what_is_written_names_every_setting_that_is_set():
    said = yaml.safe_load(format_campaign_file(CampaignSettings(name="Verbs", question="How often?")))
    assert said["tie_margin_points"] == 0
    assert said["leaders_as_companions"] is False
    assert set(CampaignSettings.model_fields) - said.keys() == {
        *("instructions", "middle_label", "design_settings", "minutes_per_hit", "pay", "prior"),
        *("hits_per_iteration", "hits_per_annotator", "implied_asked_percent", "prolific_completion_code"),
        *("source_column", "reference_column", "criteria", "asked_by", "consent", "questions", "quality_rules"),
        *("exclude_campaigns", "only_campaigns", "fixed_items", "assigned_column", "quotas", "return_quota_full"),
        *("passphrase", "people_per_address", "checks_percent", "alert_emails", "alert_webhook", "alert_quiet_minutes"),
        *("training", "qualification"),
        *("pay_per_hit", "in_short", "break_minutes", "return_completed", "return_failed_checks"),
        *("return_screened_out", "return_nothing_left", "open_platforms", "items_language", "tags"),
        *("source_language", "max_plays", "comment_question"),
        *("condition_column", "content_column", "tasks_per_block", "block_pause"),
        *("study_controller", "study_contact", "study_purpose", "ethics_approval"),
        *("identifiers_days", "free_text_days", "telemetry_days", "everything_days"),
        *("panel_title", "panel_query", "panel_submission", "panel_key", "frame_origins", "form_origins"),
        *("recruiting_title", "recruiting_description", "recruiting_minutes", "recruiting_filter_set"),
        *("recruiting_groups", "recruiting_excluded_groups", "recruiting_labels"),
        *("call_completed", "call_failed_checks", "call_screened_out", "call_quota_full", "call_nothing_left"),
        *("call_headers", "call_confirmation"),
    }


# Campaigns that are stored


async def created(engine, text, **how):
    async with engine.begin() as connection:
        return await campaign_file_io.create_draft_from_campaign_file(
            connection, SentCampaign(parse_campaign_file(text.encode(), "c.yaml"), **how), now=NOW, max_mb=1
        )


async def filed(engine, campaign, *, with_items=True):
    async with engine.begin() as connection:
        file = await campaign_file_io.build_campaign_yaml_or_zip(connection, campaign.slug, with_items=with_items)
    return b"".join(campaign_file_io.iterate_archive_bytes_then_close(file)).decode()


async def content(engine, campaign):
    """The settings of a campaign and its items."""
    of_it = f"WHERE campaign_id = {campaign.id} ORDER BY number"
    rows = await fetch_rows(engine, f"SELECT external_id, shown, fields, prior FROM items {of_it}")
    return lifecycle.unchecked_settings_with_deliverable_emails(campaign).model_dump(exclude={"name"}), rows


async def test_the_study_with_everything_of_the_docs_can_be_launched_as_it_stands(engine):
    page = (ROOT / "docs" / "reference" / "campaign-file.md").read_text()
    study = page.partition("## A complete study")[2].partition("```yaml\n")[2].partition("```")[0]
    campaign = await apply_action(engine, await created(engine, study))
    assert (campaign.status, campaign.has_checks, campaign.checks_percent) == ("running", True, 20)
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 2
    assert await fetch_value(engine, "SELECT count(*) FROM items") == 6


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_campaign_made_from_the_file_of_another_is_equal(engine, design):
    first = await create_draft(engine, design=design, instructions="# a\n\n- b", pay="no")
    table = 'id,text,n\na,"x: y",1\nb,no,\nc, spaced ,007\n'
    await import_items(engine, first, table, shown="text")
    assert await content(engine, await created(engine, await filed(engine, first))) == await content(engine, first)


async def test_items_of_json_lines_with_priors_are_equal_too(engine):
    first = await create_draft(engine)
    rows = [
        {"id": k, "text": f"verb {k}", "alpha": 1.5, "beta": 2, "more": {"tags": ["no", None, True, 1e-07]}}
        for k in range(3)
    ]
    await import_items(engine, first, "".join(json.dumps(row) + "\n" for row in rows), "items.jsonl", priors=True)
    again = await content(engine, await created(engine, await filed(engine, first)))
    assert again == await content(engine, first)
    assert again[1][0][3] == [1.5, 2.0]


async def test_texts_made_by_a_template_get_a_column_of_their_own(engine):
    first = await create_draft(engine)
    await import_items(engine, first, "id,shown,b\n1,x,y\n2,p,q\n", template="{shown} → {b}")
    again = await content(engine, await created(engine, await filed(engine, first)))
    assert [(row[1], row[2]["shown-2"]) for row in again[1]] == [("x → y", "x → y"), ("p → q", "p → q")]


@pytest.mark.parametrize(("identifier", "ids"), [("key", ["k1", "k2"]), (None, ["1", "2"])])
async def test_an_uploaded_column_id_that_is_not_the_ids_gets_another_name(engine, identifier, ids):
    first = await create_draft(engine, source_column="id")
    await import_items(engine, first, "id,key,text\n7,k1,x\n7,k2,y\n", identifier=identifier)
    settings, rows = await content(engine, await created(engine, await filed(engine, first)))
    assert [row[0] for row in rows] == ids
    assert [row[2] for row in rows] == [
        {"id": own, "id-2": "7", "key": f"k{k}", "text": words} for k, own, words in zip((1, 2), ids, "xy", strict=True)
    ]
    assert settings["source_column"] == "id-2"


@pytest.mark.parametrize(
    ("settings", "checks"),
    [
        ({}, "g1,to walk,gold,80,12.5\ng2,to be,attention,33.3,\n"),
        ({"design": "ordinal", "design_settings": {"labels": ["a", "b", "c"]}}, "g1,x,gold,a|b,1\ng2,y,gold,c,\n"),
        ({"design": "pairwise"}, "g1,x,gold,1,\ng2,y,gold,2,\n"),
        ({"design": "magnitude", "design_settings": {"reference": "x"}}, "g1,x,gold,1e-3,3\n"),
    ],
)
async def test_checks_are_in_the_file_as_rows_of_the_items(engine, settings, checks):
    first = await create_draft(engine, checks_percent=20, **settings)
    await import_items(engine, first, "id,text,check,expected,tolerance\na,x,,,\nb,y,,,\n" + checks)
    made = await created(engine, await filed(engine, first))
    of = "SELECT number, external_id, kind, shown, expected FROM check_items WHERE campaign_id = :id ORDER BY number"
    assert await fetch_rows(engine, of, id=made.id) == await fetch_rows(engine, of, id=first.id) != []
    assert await content(engine, made) == await content(engine, first)


async def test_a_file_may_have_checks_alone(engine):
    first = await create_draft(engine)
    await import_items(engine, first, "id,text,check,expected\ng,x,gold,80\n")
    made = await created(engine, await filed(engine, first))
    assert await fetch_rows(engine, "SELECT shown FROM check_items WHERE campaign_id = :id", id=made.id) == [("x",)]


async def test_a_file_without_items_has_the_settings_alone(engine):
    first = await create_draft(engine, judgments_per_item=7)
    await import_items(engine, first, "id,text\n1,x\n2,y\n")
    await apply_action(engine, first)
    text = await filed(engine, first, with_items=False)
    assert "rows:" not in text
    assert settings(text).judgments_per_item == 7


async def test_too_many_items_are_left_to_a_table(engine):
    first = await create_draft(engine)
    await import_items(engine, first, "id,text\n" + "".join(f"{k},v\n" for k in range(MAX_ITEMS_IN_CAMPAIGN_FILE + 1)))
    with pytest.raises(TooLarge) as refusal:
        await filed(engine, first)
    assert refusal.value.code == "items_too_many"


@pytest.mark.parametrize(
    ("items", "code", "words"),
    [
        ("  rows:\n  - {id: a, text: x}\n  - {id: a, text: y}\n", "id_twice", "c.yaml: Line 6: "),
        ("  rows:\n  - {id: a, text: x}\n  - {text: y}\n", "id_missing", "c.yaml: Line 6: "),
        ("  shown: none\n  rows:\n  - {id: a, text: x}\n", "column_unknown", "none"),
        ("  rows:\n  - {id: a, text: 1e999}\n", "json_unreadable", "c.yaml: Line 5: "),
        ("  file: items.csv\n", "items_not_sent", "items.csv"),
    ],
)
async def test_items_that_are_wrong_leave_no_campaign_behind(engine, items, code, words):
    with pytest.raises(Invalid) as refusal:
        await created(engine, f"{START}items:\n{items}")
    assert refusal.value.code == code
    assert words in refusal.value.message
    assert await fetch_rows(engine, "SELECT 1 FROM campaigns") == []


async def test_items_come_from_a_table(engine, tmp_path):
    (tmp_path / "items.tsv").write_text("id\tverb\na\trun\nb\tgo\n")
    text = START + "items: {shown: verb, file: items.tsv}\n"
    with campaign_file_io.file_path_in_folder_or_refuse(tmp_path, "items.tsv").open("rb") as opened:
        made = await created(engine, text, table=ItemTable("items.tsv", opened))
    assert [row[1] for row in (await content(engine, made))[1]] == ["run", "go"]


async def test_items_come_from_a_text_on_each_line_unless_the_file_says_otherwise(engine):
    texts = b"Send it.\nPlease, send it\n"
    for part, name, stored in (
        ("{file: a.txt}", "a.txt", ["Send it.", "Please, send it"]),
        ("{file: a.csv, read_as: lines}", "a.csv", ["Send it.", "Please, send it"]),
        ("{file: a.txt, read_as: table, id: ':row numbers:'}", "a.txt", ["walk"]),
    ):
        lines = io.BytesIO(texts if "table" not in part else b"verb\nwalk\n")
        made = await created(engine, START + f"items: {part}\n", table=ItemTable(name, lines))
        assert [row[1] for row in (await content(engine, made))[1]] == stored, part


def test_a_table_lies_beside_its_file_and_nowhere_else(tmp_path):
    folder = tmp_path / "here"
    (folder / "below").mkdir(parents=True)
    for path in (tmp_path / "items.csv", folder / "below" / "items.csv"):
        path.write_text("id,text\n")
    (folder / "away.csv").symlink_to(tmp_path / "items.csv")
    assert campaign_file_io.file_path_in_folder_or_refuse(folder, "below/items.csv").is_file()
    for name in ("../items.csv", str(tmp_path / "items.csv"), "away.csv", "below/../../items.csv"):
        with pytest.raises(Invalid) as refusal:
            campaign_file_io.file_path_in_folder_or_refuse(folder, name)
        assert refusal.value.code == "items_outside"
    for name in ("none.csv", "below"):
        with pytest.raises(NotFound):
            campaign_file_io.file_path_in_folder_or_refuse(folder, name)


def test_everything_that_a_file_may_say_is_described():
    for name, field in CampaignFile.model_fields.items():
        assert field.description, name


def test_a_file_begins_with_what_the_campaign_is_called_and_asks():
    settings = CampaignSettings(name="Verbs", question="How frequent?", instructions="Guess.")
    lines = [line for line in format_campaign_file(settings).splitlines() if not line.startswith("#")]
    assert [line.partition(":")[0] for line in lines][:4] == ["name", "question", "instructions", "design"]
