"""Nothing on an annotator's page tells checks from other items, whatever is remembered of earlier pages."""

import re
from typing import Any

import pytest

from tests.annotation.hits.campaigns import fetch_rows
from tests.annotation.hits.observer import HitForm, Observer
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table
from tests.campaigns.drafts import apply_action, create_draft, create_launched_campaign, import_items
from tests.media.files import packed, png

ITEMS = "".join(f"v{k},verb {k:03d},,\n" for k in range(40))
WORDS = re.compile(r"verb \d{3}")
LABELS = {"labels": ["low", "middle", "high"]}
PLACES = ["1", "2", "1", "2", "3", "1", "2", "1", "2", "3"]
WAYS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "slider": (["80"] * 10, {"items_per_hit": 5}),
    "rating": (["80"] * 10, {}),
    "magnitude": (["80"] * 10, {"items_per_hit": 4}),
    "ordinal": (["high"] * 10, {"items_per_hit": 3, "design_settings": LABELS}),
    "categories": (["low"] * 10, {"items_per_hit": 1, "design_settings": LABELS}),
    "ranking": (PLACES, {"items_per_hit": 4}),
    "pairwise": (PLACES, {}),
    "best_worst": (PLACES, {}),
}
ASKING_ALL = {"cannot_be_judged": True, "unjudged_reasons": ["broken"], "comment_on": "both", "flag_on": "both"}


def checks(expected):
    return "".join(f"g{k},verb 9{k:02d},{'gold' if k % 2 else 'attention'},{one}\n" for k, one in enumerate(expected))


async def with_mixed_in(engine, design, **more):
    expected, settings = WAYS[design]
    rows = checks(expected if design not in ("ranking", "pairwise", "best_worst") else PLACES)
    rows = rows.replace("attention", "gold") if expected is PLACES else rows
    settings = {"checks_percent": 50, "judgments_per_item": 40, "design": design} | settings | more
    return await create_launched_campaign(engine, "id,text,check,expected\n" + ITEMS + rows, **settings)


async def pages_of(client, campaign, visits, hits, words=WORDS):
    """Each page of so many visits, one after another, with how many HITs were answered before it."""
    link = f"/link/{campaign.link_key}"
    for _ in range(visits):
        page = (await client.post(link, follow_redirects=True)).text
        for answered in range(hits):
            form = HitForm(page, words)
            assert form.items, re.sub(r"<[^>]*>", " ", page)
            yield answered, form
            reply = await client.post(link, data=form.filled_in())
            assert reply.status_code == 200
            page = reply.text


@pytest.mark.parametrize("design", WAYS)
async def test_neither_earlier_pages_nor_anything_but_its_words_tell_a_check(engine, client, design):
    campaign = await with_mixed_in(engine, design, **ASKING_ALL)
    observer, suspected = Observer(), set[str]()
    met: list[int] = []
    alike: dict[int, set[str]] = {}
    async for answered, form in pages_of(client, campaign, visits=3, hits=8):
        suspects = observer.suspects(form.items)
        met.append(sum(words >= "verb 900" for words in form.items))
        if len(met) > 8:  # by then they know enough pages
            suspected |= suspects
        alike.setdefault(min(answered, 2), set()).add(form.skeleton)
    assert sum(met[8:]) > 2
    assert suspected == set()
    assert sum(map(bool, met)) > 2
    assert [len(skeletons) for skeletons in alike.values()] == [1] * 3


async def test_images_of_checks_come_from_addresses_like_those_of_items(engine, client):
    names = [f"{k}.png" for k in range(12)] + [f"gold{k}.png" for k in range(5)]
    rows = "".join(f"{k},{name},{'gold' if k > 11 else ''},{80 if k > 11 else ''}\n" for k, name in enumerate(names))
    settings = {"content": "image", "checks_percent": 50, "items_per_hit": 4, "judgments_per_item": 40}
    campaign = await create_draft(engine, **settings)
    files = packed({name: png(grey=k) for k, name in enumerate(names)})
    await import_items(engine, campaign, f"id,text,check,expected\n{rows}", media=files)
    await apply_action(engine, campaign)
    observer, suspected, shown = Observer(), set[str](), set[str]()
    skeletons: dict[int, set[str]] = {}
    async for answered, form in pages_of(client, campaign, visits=4, hits=5):
        suspects = observer.suspects(form.items)
        suspected |= suspects if len(shown) > 10 else set()
        shown |= {*form.items}
        skeletons.setdefault(min(answered, 2), set()).add(form.skeleton)
    assert suspected == set()
    assert [len(one) for one in skeletons.values()] == [1] * 3
    address = "SELECT '/media/' || replace(CAST(address AS text), '-', '') FROM media"
    assert shown <= {row[0] for row in await fetch_rows(engine, address)}
    assert shown & {row[0] for row in await fetch_rows(engine, f"{address} WHERE name LIKE 'gold%'")}


async def test_systems_are_not_known_again_by_anything_but_their_outputs(engine, client):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=6), judgments_per_item=40, items_per_hit=3, **ASKING_ALL
    )
    skeletons = set()
    outputs = re.compile(r"(?:ape|bee|cat|doe) on \d")
    async for answered, form in pages_of(client, campaign, visits=3, hits=4, words=outputs):
        if answered > 1:
            skeletons.add(form.skeleton)
    assert len(skeletons) == 1


async def test_who_opens_their_answer_again_finds_checks_as_they_left_them_like_items(engine, client):
    campaign = await with_mixed_in(engine, "slider", **ASKING_ALL)
    async for _, form in pages_of(client, campaign, visits=1, hits=12):
        places = [place for place, words in enumerate(form.items) if words >= "verb 900"]
        if not places:
            continue
        said = {f"unjudged-0{place}": "broken" for place in range(5)} | {
            f"comment-0{place}": "Hm." for place in range(5)
        }
        await client.post(f"/link/{campaign.link_key}", data=form.filled_in() | said)
        token = {"token": form.hidden["token"], "undo": "1"}
        again = HitForm((await client.post(f"/link/{campaign.link_key}", data=token)).text, WORDS)
        assert again.skeleton.count("('selected', '')") == 5
        assert again.skeleton.count("\nHm.") == 5
        return
    pytest.fail("no check in twelve HITs")


async def test_a_set_with_a_check_is_called_the_last_one_only_if_nothing_follows(engine, client):
    items = "".join(f"v{k},verb {k:03d},,\n" for k in range(5)) + checks(["80"] * 4)
    settings = {"checks_percent": 50, "judgments_per_item": 90, "items_per_hit": 5, "repeat_items": False}
    campaign = await create_launched_campaign(engine, f"id,text,check,expected\n{items}", **settings)
    for _ in range(30):
        page = (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text
        if "verb 9" in page:
            assert 'data-send="Submit and next"' in page  # one of the five items is left
            return
    pytest.fail("no check in thirty visits")
