"""Pages that are made from pieces of earlier ones are the same as pages that are rendered."""

import re
from dataclasses import dataclass, field
from html import unescape
from itertools import chain

import pytest
from cachetools import LRUCache
from sqlalchemy import text

from app.annotation.hits.pages.page_pieces import PageKey, PagePiecesCache, approximate_bytes_of_pieces
from tests.annotation.hits.observer import HitForm
from tests.annotation.hits.test_blind_pages import WAYS
from tests.campaigns.drafts import create_launched_campaign


@dataclass(frozen=True)
class ObservedPieces(PagePiecesCache):
    """Pieces that note which pages came from them, and which were rendered a second time."""

    are_from_pieces: list[bool] = field(default_factory=list)
    renders_with_marks: list[PageKey] = field(default_factory=list)

    def page_html_or_none(self, key, values):
        page = super().page_html_or_none(key, values)
        self.are_from_pieces.append(page is not None)
        return page

    def learn_pieces_of_rendered_page(self, key, context, values, page, render):
        def render_and_note(variables):
            self.renders_with_marks.append(key)
            return render(variables)

        super().learn_pieces_of_rendered_page(key, context, values, page, render_and_note)


FETCH = {"x-easel": "fetch"}
WORDS = re.compile(r"verb <i>\d{3}</i> &amp; “it’s”|verb \d{3}")
SPECIAL = "".join(f"v{k},verb <i>{k:03d}</i> &amp; “it’s”\n" for k in range(60))


async def launch(engine, design="slider", rows=SPECIAL, **more):
    settings = WAYS[design][1] | {"design": design, "judgments_per_item": 40} | more
    return await create_launched_campaign(engine, "id,text\n" + rows, **settings)


async def parts_of_a_visit(client, campaign, hits, **headers):
    """The parts that an annotator's script gets after each answer."""
    link = f"/link/{campaign.link_key}"
    page = (await client.post(link, follow_redirects=True, headers=headers)).text
    for _ in range(hits):
        reply = await client.post(link, data=HitForm(page, WORDS).filled_in(), headers=FETCH | headers)
        assert reply.status_code == 200, reply.text
        page = reply.text
        yield page


def without_own_values(part):
    """Return a part of a page without its token, its id and the words of its items."""
    part = re.sub(r'((?:name="(?:token|hit)" value|data-hit)=)"[^"]*"', r"\1", part)
    return re.sub(r'(<div class="text"[^>]*>).*?</div>', r"\1", part, flags=re.DOTALL)


def words_of(part):
    return [
        unescape(words) for words in re.findall(r'<div class="text" id="text-\d\d"[^>]*>(.*?)</div>', part, re.DOTALL)
    ]


async def shown_texts_of_hit(engine, part):
    statement = text("""
        SELECT i.shown FROM hits h, unnest(h.items) WITH ORDINALITY AS one (number, place)
        JOIN items i ON i.number = one.number
        WHERE h.id = :hit AND i.campaign_id = h.campaign_id ORDER BY place
    """)
    async with engine.connect() as connection:
        rows = await connection.execute(statement, {"hit": int(HitForm(part, WORDS).hidden["hit"])})
        return [*rows.scalars()]


@pytest.mark.parametrize("design", WAYS)
async def test_the_same_page_comes_for_the_next_annotator_with_their_own_items(app, client, design):
    engine = app.state.database
    campaign = await launch(engine, design)
    app.state.page_pieces = pieces = ObservedPieces()
    visits = [[part async for part in parts_of_a_visit(client, campaign, 3)] for _ in range(3)]
    assert pieces.are_from_pieces[-3:] == [True] * 3
    for visit in visits:
        assert [*map(without_own_values, visit)] == [*map(without_own_values, visits[0])]
    for part in chain(*visits):
        assert words_of(part) == await shown_texts_of_hit(engine, part)
    assert len({HitForm(part, WORDS).hidden["token"] for part in chain(*visits)}) == 3


async def test_pages_from_pieces_show_how_much_is_done_and_earned(app, client):
    campaign = await launch(
        app.state.database, hits_per_annotator=9, minutes_per_hit=2, pay_per_hit=0.5, currency="EUR", undo=True
    )
    app.state.page_pieces = pieces = ObservedPieces()
    for _ in range(2):
        parts = [part async for part in parts_of_a_visit(client, campaign, 8)]
        for done, part in enumerate(parts, start=1):
            (progress,) = re.findall(r'<p class="progress">(.*?)</p>', part, re.DOTALL)
            assert (
                progress == f"{done} of 9 tasks done · about {2 * (9 - done)} min left · <b>€{done / 2:.2f} earned</b>"
            )
    # Three keys: after the first answer, after later ones, and with the button of the last HIT.
    assert pieces.are_from_pieces == [False, False, False, *[True] * 4, False, False, *[True] * 6, False]
    assert len(pieces.renders_with_marks) == 3


async def test_pages_whose_keys_do_not_return_soon_are_rendered_once(app, client):
    campaigns = [await launch(app.state.database) for _ in range(6)]
    app.state.page_pieces = pieces = ObservedPieces(missed=LRUCache(5))
    for _ in range(3):
        for campaign in campaigns:
            assert [part async for part in parts_of_a_visit(client, campaign, 1)]
    assert pieces.are_from_pieces == [False] * 18
    assert pieces.renders_with_marks == []


async def test_pieces_have_a_limited_size(app, client):
    campaigns = [await launch(app.state.database) for _ in range(3)]
    app.state.page_pieces = pieces = ObservedPieces(LRUCache(30_000, approximate_bytes_of_pieces))
    for _ in range(3):
        for campaign in campaigns:
            assert [part async for part in parts_of_a_visit(client, campaign, 1)]
    assert 0 < pieces.pieces.currsize <= 30_000
    assert len(pieces.renders_with_marks) == 3


async def test_a_page_follows_its_language_and_its_campaign(app, client):
    campaign = await launch(app.state.database)
    english = [part async for part in parts_of_a_visit(client, campaign, 2)]
    german = [part async for part in parts_of_a_visit(client, campaign, 2, **{"accept-language": "de"})]
    assert ">Submit and next<" in english[1]
    assert ">Submit and next<" not in german[1]
    async with app.state.database.begin() as connection:
        await connection.execute(text("UPDATE campaigns SET question = 'Which <one>?'"))
    changed = [part async for part in parts_of_a_visit(client, campaign, 2)]
    assert all("Which &lt;one&gt;?" in part for part in changed)


async def test_a_page_with_long_items_has_their_layout_whichever_comes_first(app, client):
    rows = "".join(f"v{k},{'verb ' + f'{k:03d}'}{' and many more words to read' * (k // 40)}\n" for k in range(80))
    campaign = await launch(app.state.database, rows=rows, items_per_hit=2)
    parts = [part for _ in range(6) async for part in parts_of_a_visit(client, campaign, 4)]
    is_wide = [any(len(words) > 28 for words in words_of(part)) for part in parts]
    assert [" long-texts" in part for part in parts] == is_wide
    assert {*is_wide} == {True, False}


async def test_a_page_with_a_refusal_or_a_repeated_answer_says_so(app, client):
    campaign = await launch(app.state.database)
    link = f"/link/{campaign.link_key}"
    parts = [part async for part in parts_of_a_visit(client, campaign, 2)]
    again = HitForm(parts[0], WORDS).filled_in()
    assert "stored already" in (await client.post(link, data=again, headers=FETCH)).text
    assert "stored already" not in parts[1]
