"""Items of a file: all of them in the draft, or none."""

import asyncio
import io
import json
from pathlib import Path

import pytest
from sqlalchemy import text

from app import uploads
from app.campaigns import lifecycle, settings_edits, summaries
from app.campaigns.settings import CampaignSettings
from app.errors import Conflict, Invalid, NotFound, Refusal, TooLarge
from app.imports import item_storage, items
from app.imports.demo import find_or_launch_demo_campaign
from tests.annotation.hits.campaigns import NOW, create_running_campaign, execute_sql, fetch_rows, fetch_value
from tests.campaigns.drafts import (
    VERBS,
    apply_action,
    create_draft,
    create_launched_campaign,
    import_items,
    import_results,
)

SENTENCES = (Path(__file__).resolve().parents[2] / "examples" / "data" / "sentences.csv").read_text()

COUNT = "SELECT count(*) FROM items"


async def refused(engine, campaign, content, **how):
    """The code and the line of an import that is refused, after which the database is as it was."""
    before = await fetch_rows(engine, "SELECT * FROM items ORDER BY number")
    with pytest.raises(Refusal) as problem:
        await import_items(engine, campaign, content, **how)
    assert await fetch_rows(engine, "SELECT number FROM items ORDER BY number") == [row[1:2] for row in before]
    return problem.value.code, problem.value.details.get("line")


async def test_items_are_numbered_in_file_order_and_keep_their_columns(engine):
    campaign = await create_draft(engine)
    count = await import_items(engine, campaign, 'id,zipf,text\nb,3.5," abide "\na,,"größer, 1\n2"\n')
    assert count == 2
    assert await fetch_rows(
        engine, "SELECT number, external_id, shown, fields::text, prior FROM items ORDER BY number"
    ) == [
        (0, "b", " abide ", '{"id": "b", "zipf": "3.5", "text": " abide "}', None),
        (1, "a", "größer, 1\n2", '{"id": "a", "zipf": "", "text": "größer, 1\\n2"}', None),
    ]


EXACT = {
    "indentation": "    return x + 1\n    # done",
    "a tab": "def f(x):\n\treturn x",
    "an indented second line": "  if a:\n      b()",
    "one line": "x = 1",
    "runs of spaces": "y  =   2",
    "lines at both ends": "\n\n a \n\n",
    "other spaces": "\u3000a\xa0\xa0b\u2003",
    "right to left": "\u200f  שלום   עולם\n\tא",
    "a long text": "a" * 99_999 + " ",
}


async def test_a_text_is_kept_exactly_as_it_was_uploaded(engine):
    campaign = await create_draft(engine)
    rows = [{"id": name, "text": text} for name, text in EXACT.items()]
    await import_items(engine, campaign, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    table = "".join(f'{name} in CSV,"{text}"\n' for name, text in EXACT.items())
    await import_items(engine, campaign, "id,text\n" + table)
    stored = dict(await fetch_rows(engine, "SELECT external_id, shown FROM items"))
    assert stored == EXACT | {f"{name} in CSV": text for name, text in EXACT.items()}


async def test_a_text_that_looks_empty_is_refused_with_its_line(engine, subtests):
    for blank in ("\u200b", "\u2060\ufeff", "\xad", "\u3164", " \u2800\t"):
        with subtests.test(blank=blank):
            campaign = await create_draft(engine)
            with pytest.raises(Invalid) as problem:
                await import_items(engine, campaign, f"id,text\n1,fine\n2,{blank}\n")
            assert (problem.value.code, problem.value.details["line"]) == ("shown_empty", 3)
            with pytest.raises(Invalid) as problem:
                await import_items(engine, campaign, f"id,text\n1,fine\n{blank},fine\n")
            assert (problem.value.code, problem.value.details["line"]) == ("id_missing", 3)
            outputs = f"system,segment,output\na,1,fine\nb,1,{blank}\n"
            with pytest.raises(Invalid) as problem:
                await import_items(engine, campaign, outputs)
            assert (problem.value.code, problem.value.details["line"]) == ("output_empty", 3)


@pytest.mark.parametrize(("content", "text"), [("html", "<p>&nbsp;&#8203;</p><!-- x -->"), ("markdown", "&shy;\n\n> ")])
async def test_markup_that_draws_nothing_is_refused_with_its_line(engine, content, text):
    campaign = await create_draft(engine, content=content)
    await import_items(engine, campaign, "id,text\n1,<hr> or words\n")
    with pytest.raises(Invalid) as problem:
        await import_items(engine, campaign, f'id,text\n2,fine\n3,"{text}"\n')
    assert (problem.value.code, problem.value.details["line"]) == ("shown_empty", 3)


async def test_a_template_makes_no_text_that_is_too_long(engine):
    campaign = await create_draft(engine)
    with pytest.raises(Invalid) as problem:
        await import_items(engine, campaign, "id,a\n1," + "x" * 60_000 + "\n", template="{a}{a}")
    assert (problem.value.code, problem.value.details["line"]) == ("shown_too_long", 2)


async def test_values_within_columns_become_items_and_a_path_that_no_row_has_is_refused(engine):
    campaign = await create_draft(engine)
    rows = [{"id": k, "messages": [{"role": "user", "content": f"  What is {k}?"}]} for k in range(2)]
    table = "".join(json.dumps(row) + "\n" for row in rows)
    with pytest.raises(Invalid) as problem:
        await import_items(engine, campaign, table, "a.jsonl", template="Q: {messages[0].contnet} {id}")
    assert (problem.value.code, problem.value.details["column"]) == ("column_unknown", "messages[0].contnet")
    with pytest.raises(Invalid) as problem:
        await import_items(engine, campaign, table, "a.jsonl", shown="messages[1].content")
    assert (problem.value.code, problem.value.details["line"]) == ("shown_empty", 1)
    await import_items(engine, campaign, table, "a.jsonl", shown="messages[0].content")
    assert await fetch_rows(engine, "SELECT shown FROM items ORDER BY number") == [("  What is 0?",), ("  What is 1?",)]


async def test_json_lines_may_have_numbers_as_ids_and_differing_columns(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, '{"id": 7, "text": "a"}\n{"id": 8, "text": "b", "n": 1.5}\n', "a.jsonl")
    assert await fetch_rows(engine, "SELECT external_id, shown, fields::text FROM items ORDER BY number") == [
        ("7", "a", '{"id": 7, "text": "a"}'),
        ("8", "b", '{"id": 8, "text": "b", "n": 1.5}'),
    ]


async def test_the_shown_text_can_be_made_by_a_template(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,p,h\n1,rain,wet\n", template="{p} → {h}")
    assert await fetch_value(engine, "SELECT shown FROM items") == "rain → wet"


async def test_a_second_file_is_added_and_replace_begins_anew(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text\n1,a\n2,b\n")
    await import_items(engine, campaign, "id,text\n3,c\n")
    assert await fetch_rows(engine, "SELECT number, external_id FROM items ORDER BY number") == [
        (0, "1"),
        (1, "2"),
        (2, "3"),
    ]
    await import_items(engine, campaign, "id,text\n3,x\n1,y\n", replace=True)
    assert await fetch_rows(engine, "SELECT number, external_id, shown FROM items ORDER BY number") == [
        (0, "3", "x"),
        (1, "1", "y"),
    ]


async def test_one_wrong_row_and_nothing_is_imported(engine, subtests):
    for replace in (False, True):
        for content, expected in (
            ("key,text\n1,a\n", ("column_unknown", None)),
            ("id,text\n1,a\n\n2,b\n1,c\n", ("id_twice", 5)),
            ("id,text\n1,a\n 1 ,c\n", ("id_twice", 3)),
            ("id,text\n1,a\n ,c\n", ("id_missing", 3)),
            ("id,text\n1,a\n" + "i" * 201 + ",c\n", ("id_too_long", 3)),
            ('id,text\n1,"a\nb"\n2," "\n', ("shown_empty", 4)),
            ("id,text\n1," + "x" * 100_001 + "\n", ("cell_too_long", 2)),
            ("id,text\n1,a\n2\n", ("ragged_row", 3)),
            ("id,verb,zipf\n1,a,2\n", ("shown_not_chosen", None)),
            ("id,text\n", ("file_empty", None)),
            ("", ("file_empty", None)),
            ("id,text,alpha,beta\n1,a,2,3\n2,b,2,\n", ("prior_invalid", 3)),
            ("id,text,alpha,beta\n1,a,two,3\n", ("prior_invalid", 2)),
            ("id,text,alpha,beta\n1,a,nan,3\n", ("prior_invalid", 2)),
            ("id,text,alpha,beta\n1,a,0,3\n", ("prior_invalid", 2)),
            ("id,text,mu,sigma2\n1,a,0.5,0.1\n", ("prior_of_another_law", None)),
        ):
            with subtests.test(replace=replace, content=content, expected=expected):
                campaign = await create_draft(engine)
                await import_items(engine, campaign, "id,text\nold,o\n")
                priors = "alpha" in content or "mu" in content
                assert await refused(engine, campaign, content, replace=replace, priors=priors) == expected
                items = "SELECT string_agg(external_id, ',') FROM items WHERE campaign_id = :campaign"
                assert await fetch_value(engine, items, campaign=campaign.id) == "old"


async def test_an_id_the_campaign_has_already_is_refused_unless_it_is_replaced(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text\nold,o\n")
    assert await refused(engine, campaign, "id,text\n1,a\nold,c\n") == ("id_taken", 3)
    assert await import_items(engine, campaign, "id,text\n1,a\nold,c\n", replace=True) == 2


async def test_a_wrong_row_behind_thousands_takes_them_all_back(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text\nold,o\n")
    content = "id,text\n" + "".join(f"{k},t\n" for k in range(item_storage.ITEMS_PER_COPY + 1)) + "x,\n"
    reported: list[int] = []
    with pytest.raises(Invalid):
        await import_items(engine, campaign, content, replace=True, progress=reported.append)
    assert reported == [item_storage.ITEMS_PER_COPY]
    assert await fetch_value(engine, "SELECT external_id FROM items") == "old"


async def test_the_cap_on_items_counts_those_already_there(engine, monkeypatch):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, VERBS)
    monkeypatch.setattr(item_storage, "MAX_ITEMS_PER_CAMPAIGN", 7)
    with pytest.raises(TooLarge) as problem:
        await import_items(engine, campaign, "id,text\n1,a\n2,b\n")
    assert problem.value.code == "too_many_items"
    assert await fetch_value(engine, COUNT) == 6


async def test_a_file_of_items_may_have_more_rows_than_a_table_that_is_held_in_memory(engine, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UPLOAD_ROWS", 5)
    campaign = await create_launched_campaign(engine)
    assert await fetch_value(engine, COUNT) == 6
    answers = "hit,annotator,item,value\n" + "".join(f"h{k},W1,v{i},{k}\n" for k in range(3) for i in range(2))
    with pytest.raises(TooLarge) as problem:
        await import_results(engine, campaign, answers)
    assert problem.value.code == "too_many_rows"


async def test_only_a_draft_takes_items(engine):
    campaign = await create_launched_campaign(engine)
    with pytest.raises(Conflict) as problem:
        await import_items(engine, campaign, "id,text\nnew,n\n", replace=True)
    assert problem.value.code == "not_a_draft"
    assert await fetch_value(engine, COUNT) == 6


async def test_a_campaign_that_does_not_exist_is_not_found(engine):
    async with engine.begin() as connection:
        with pytest.raises(NotFound):
            await items.import_items_and_return_receipt(
                connection, "none", io.BytesIO(b"id,text\n1,a\n"), "a.csv", max_mb=1
            )


async def test_a_launch_during_an_import_waits_for_its_items(engine):
    campaign = await create_draft(engine)
    async with engine.begin() as connection:
        await items.import_items_and_return_receipt(
            connection, campaign.slug, io.BytesIO(VERBS.encode()), "a.csv", max_mb=1
        )
        launch = asyncio.create_task(apply_action(engine, campaign))
        await asyncio.sleep(0.2)
        assert not launch.done()
    await launch
    assert await fetch_value(engine, "SELECT count(*) FROM posteriors") == 6


async def test_two_imports_of_one_file_at_once_are_one_import_and_one_refusal(engine):
    campaign = await create_draft(engine)
    outcomes = await asyncio.gather(*(import_items(engine, campaign, VERBS) for _ in range(2)), return_exceptions=True)
    assert sorted(str(getattr(outcome, "code", outcome)) for outcome in outcomes) == ["6", "id_taken"]


async def test_a_long_file_is_reported_on_the_way(engine):
    campaign = await create_draft(engine)
    content = "id,text,more\n" + "".join(f"{k},verb number {k},{k / 7}\n" for k in range(20_000))
    reported: list[int] = []
    assert await import_items(engine, campaign, content, progress=reported.append) == 20_000
    assert reported == list(range(5_000, 20_001, 5_000))
    assert await fetch_value(engine, COUNT) == 20_000


# The EASL program's files


async def test_the_easl_programs_items_need_no_choice(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,sent\n1,obama is a legend\n2,cruz is correct\n")
    assert await fetch_value(engine, "SELECT string_agg(shown, '; ' ORDER BY number) FROM items") == (
        "obama is a legend; cruz is correct"
    )


@pytest.mark.parametrize("names", ["mode,var", "mu,sigma"])
@pytest.mark.parametrize("law", ["easl", "ra"])
async def test_the_easl_programs_posteriors_become_priors(engine, names, law):
    content = f"id,sent,alpha,beta,{names}\n1,a,1,1,0.5,0.0833\n2,b,2.37,1.63,0.685,0.0483\n3,c,,,,\n"
    campaign = await create_launched_campaign(engine, content, priors=True, update_law=law, prior=[2.0, 3.0])
    assert campaign.status == "running"
    assert await fetch_rows(engine, "SELECT state, judgments FROM current_posteriors ORDER BY number") == [
        ([1.0, 1.0], 0),
        ([2.37, 1.63], 0),
        ([2.0, 3.0], 0),
    ]


async def test_a_prior_that_was_stored_and_is_not_possible_stops_the_launch(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, VERBS)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET prior = ARRAY[-1, 2] WHERE number = 3"))
    with pytest.raises(Conflict) as problem:
        await apply_action(engine, campaign)
    assert problem.value.code == "impossible_prior"
    assert "item number 4" in problem.value.message
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "draft"


async def test_a_gaussian_law_takes_mu_and_sigma2_and_refuses_alpha_and_beta(engine):
    campaign = await create_draft(engine, update_law="trueskill")
    with pytest.raises(Invalid) as problem:
        await import_items(engine, campaign, "id,text,alpha,beta\n1,a,2,3\n", priors=True)
    assert problem.value.code == "prior_of_another_law"
    content = '{"id": 1, "text": "a", "mu": -0.25, "sigma2": 0.5}'
    await import_items(engine, campaign, content, "a.jsonl", priors=True)
    assert await fetch_rows(engine, "SELECT prior FROM items") == [([-0.25, 0.5],)]


def to_law(name):
    return lambda before: CampaignSettings.model_validate(before.model_dump() | {"update_law": name})


async def test_two_edits_of_different_settings_at_once_both_stay(engine):
    campaign = await create_draft(engine)

    async def edit(**changes):
        async with engine.begin() as connection:
            await settings_edits.store_changed_settings_or_refuse(
                connection, campaign.slug, lambda before: before.model_copy(update=changes)
            )
            await asyncio.sleep(0.05)  # while the other one waits for the row

    await asyncio.gather(edit(question="How rare?"), edit(low_label="common"))
    assert await fetch_rows(engine, "SELECT question, low_label FROM campaigns") == [("How rare?", "common")]


async def test_priors_of_items_forbid_a_law_that_would_misread_them(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,text,alpha,beta\n1,a,2,3\n", priors=True)
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(connection, campaign.slug, to_law("ra"))
        with pytest.raises(Conflict) as problem:
            await settings_edits.store_changed_settings_or_refuse(connection, campaign.slug, to_law("trueskill"))
    assert problem.value.code == "prior_of_another_law"
    assert await fetch_value(engine, "SELECT update_law FROM campaigns") == "ra"
    await import_items(engine, campaign, "id,text\n1,a\n", replace=True)
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(connection, campaign.slug, to_law("trueskill"))


# The demo


async def test_the_demo_is_made_once_and_running(engine):
    async with engine.begin() as connection:
        campaign = await find_or_launch_demo_campaign(connection, now=NOW)
    async with engine.begin() as connection:
        assert (await find_or_launch_demo_campaign(connection, now=NOW)).id == campaign.id
    assert (campaign.slug, campaign.status) == ("lexical-frequency", "running")
    assert await fetch_rows(engine, "SELECT count(*), min(shown), max(shown) FROM items") == [(150, "abide", "yank")]
    assert await fetch_value(engine, "SELECT count(*) FROM posteriors") == 150
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 1
    fields = json.loads(await fetch_value(engine, "SELECT fields::text FROM items WHERE external_id = '4'"))
    assert list(fields) == ["id", "verb", "wordfreq_zipf", "subtlex_freqcount", "oracle"]


async def test_a_demo_that_was_finished_stays_so(engine):
    async with engine.begin() as connection:
        campaign = await find_or_launch_demo_campaign(connection, now=NOW)
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
        assert (await find_or_launch_demo_campaign(connection, now=NOW)).status == "finished"


async def test_the_file_of_the_readmes_tour_is_imported_as_the_tour_says(engine):
    campaign = await create_draft(engine)
    assert await import_items(engine, campaign, SENTENCES, "sentences.csv", shown="sentence") == 40


async def test_a_million_items_may_want_ten_thousand_judgments_each(engine):
    campaign = await create_running_campaign(engine, items=1, judgments_per_item=10_000)
    await execute_sql(engine, "UPDATE items SET number = 999999")
    async with engine.connect() as connection:
        found = await summaries.load_campaign_with_progress_or_refuse(connection, campaign.slug)
    assert (found.item_count, found.judgments_wanted) == (1_000_000, 10_000_000_000)
