"""Comments and flags as campaign owners read them: on a page, in the API, in exports and next to an item."""

import csv
import io
from typing import Any

import pytest

from app.annotation.hits import submission, undo
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.designs.remarks import Remark
from app.exports.responses import REMARK_TEXT_COLUMNS
from app.quality import decisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_value,
    try_to_lease_hit,
)

BROKEN, RUDE = REASONS = ["It is broken", "=It is <rude>"]
SAID = {
    "0": Remark("=SUM(A1) <script>alert(1)</script>\nsecond line", BROKEN),
    "1": Remark(flag=RUDE),
    "hit": Remark("Too long.", BROKEN),
}


@pytest.fixture
def engine(app):
    return app.state.database


async def asking(engine, **settings):
    chosen: dict[str, Any] = {"comment_on": "both", "flag_on": "both", "flag_reasons": REASONS, "items_per_hit": 3}
    return await create_running_campaign(engine, **chosen | {"items": 3, "judgments_per_item": 90} | settings)


async def say(engine, campaign, name, remarks):
    """Somebody answers items 0 to 2 and says something; the number of their answer, their assignment and HIT."""
    me = await create_annotator(engine, campaign, name)
    hit = await try_to_lease_hit(engine, me)
    async with borrow_autocommit_driver(engine) as connection:
        answer = Answer(dict.fromkeys(hit.items, 50.0), remarks=remarks, source="page")
        told = await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    return told.seq, me, hit


async def exported(researcher, campaign, what, **query):
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/export/{what}", params=query)
    return list(csv.DictReader(io.StringIO(reply.text)))


async def test_the_page_has_all_of_it_newest_first_and_nothing_of_it_is_markup(engine, researcher):
    campaign = await asking(engine)
    await say(engine, campaign, "ann", SAID)
    await say(engine, campaign, "bob", {"1": Remark("I see why.", RUDE)})
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/remarks")).text
    assert html.index("I see why.") < html.index("=SUM(A1)")
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert" not in html
    assert "=It is &lt;rude&gt; (2)" in html  # of the flagged items, what two people chose
    assert "Tasks as a whole" in html
    assert 'href="/admin/campaigns/verbs/annotators/A2"' in html


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"kind": "flags"}, 4),
        ({"kind": "comments"}, 3),
        ({"item": "v1"}, 2),
        ({"annotator": "a2"}, 1),
        ({"words": "TOO LONG"}, 1),
        ({"words": "verb 1"}, 2),
        ({"words": "100%"}, 0),
        ({"item": "v1", "kind": "comments", "annotator": "A2"}, 1),
        ({}, 4),
    ],
)
async def test_what_is_looked_for_is_found(engine, researcher, query, found):
    campaign = await asking(engine)
    await say(engine, campaign, "ann", SAID)
    await say(engine, campaign, "bob", {"1": Remark("I see why.", RUDE)})
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/remarks", params=query)).text
    table = html.partition('class="log"')[2]
    assert table.count("<tr>") == (found + 1 if found else 0)
    assert ("Nothing found." in html) == (not found)


async def test_a_page_has_so_many_lines_and_no_more(engine, researcher):
    campaign = await asking(engine)
    for k in range(26):
        await say(engine, campaign, f"ann {k}", {"0": Remark(f"said {k}"), "hit": Remark(f"also {k}")})
    address = f"/admin/campaigns/{campaign.slug}/remarks"
    first, last = [(await researcher.get(address, params={"page": number})).text for number in (1, 99)]
    assert "1 to 50 of 52" in first
    assert "51 to 52 of 52" in last
    assert "said 0<" in last
    assert "said 0<" not in first


async def test_who_changed_their_answer_has_said_only_what_they_said_last(engine, researcher):
    campaign = await asking(engine)
    seq, me, hit = await say(engine, campaign, "ann", SAID)
    async with borrow_autocommit_driver(engine) as connection:
        again = Answer(dict.fromkeys(hit.items, 20.0), remarks={"hit": Remark("Better.")}, source="page")
        await undo.replace_answer_and_return_receipt_or_refuse(connection, me, hit.id, seq, again, now=NOW)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/remarks")).text
    assert "Better." in html
    assert "Too long." not in html


async def test_exports_have_it_and_no_formula(engine, researcher):
    campaign = await asking(engine)
    await say(engine, campaign, "ann", SAID)
    rows = {row["item"]: row for row in await exported(researcher, campaign, "responses.csv")}
    comment = "'=SUM(A1) <script>alert(1)</script>\nsecond line"
    assert [rows["v0"][name] for name in REMARK_TEXT_COLUMNS] == [BROKEN, comment, BROKEN, "Too long."]
    assert [rows["v1"][name] for name in REMARK_TEXT_COLUMNS] == [f"'{RUDE}", "", BROKEN, "Too long."]
    said = await exported(researcher, campaign, "remarks.csv")
    told = [(row["item"], row["check"], row["flagged"], row["flag"], row["comment"], row["counts"]) for row in said]
    assert told == [
        ("v0", "false", "true", BROKEN, comment, "true"),
        ("v1", "false", "true", f"'{RUDE}", "", "true"),
        ("", "false", "true", BROKEN, "Too long.", "true"),
    ]


async def test_a_campaign_that_never_asked_has_no_such_column_and_one_that_did_keeps_it(engine, researcher):
    silent, asked = await create_running_campaign(engine, name="Silent"), await asking(engine)
    await say(engine, asked, "ann", SAID)
    await execute_sql(engine, "UPDATE campaigns SET comment_on = 'none', flag_on = 'none'")
    columns = {
        campaign.slug: (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/responses.csv")).text.split(
            "\n"
        )[0]
        for campaign in (silent, asked)
    }
    assert "hit_comment" not in columns[silent.slug]
    assert "flag,comment,hit_flag,hit_comment" in columns[asked.slug]
    assert (
        "Annotators cannot comment on or flag anything."
        in (await researcher.get(f"/admin/campaigns/{silent.slug}/remarks")).text
    )
    assert "Too long." in (await researcher.get(f"/admin/campaigns/{asked.slug}/remarks")).text


async def test_beside_an_item_stands_what_was_said_of_it(engine, researcher):
    campaign = await asking(engine)
    await say(engine, campaign, "ann", SAID)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}", params={"item": "v0"})).text
    assert "second line" in html
    assert "Too long." not in html


async def test_who_is_excluded_is_marked_and_flags_nothing(engine, researcher):
    campaign = await asking(engine)
    await say(engine, campaign, "ann", SAID)
    async with engine.begin() as connection:
        number = await fetch_value(engine, "SELECT id FROM annotators")
        await decisions.exclude_annotator(connection, campaign, number, reason="flags everything", now=NOW)
    await execute_sql(engine, "UPDATE campaigns SET decided = (SELECT max(seq) FROM decisions)")
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/remarks")).text
    assert ">excluded<" in html
    assert "Flagged items" not in html
