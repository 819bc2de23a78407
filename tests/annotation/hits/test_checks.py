"""Gold and attention items among the items of a HIT: shown like any other, stored apart, and never scored."""

import re

import numpy as np
import pytest

from app.annotation.hits import gold_feedback, undo
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.draw_hit import propose_hit_or_none
from app.annotation.hits.leases import NextHitRequest, find_or_lease_next_hits
from app.annotation.hits.next_hit import NextHit, is_last_hit_as_far_as_known
from app.campaigns import lifecycle, settings_edits
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.errors import Conflict, Invalid
from app.imports.mark_checks import CheckToMark, turn_draft_items_into_checks_or_refuse
from app.quality import inputs
from app.quality.check_positions import (
    PlacedCheck,
    draw_check_placements_for_hit_or_none,
    shown_numbers_of_items_and_checks,
)
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    form_fields,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import apply_action, create_draft, create_launched_campaign, import_items, replay_is_clean

ITEMS = "id,text,check,expected,tolerance\n" + "".join(f"v{k},verb {k},,,\n" for k in range(30))
GOLD = "g1,to walk,gold,80,10\ng2,to flummox,gold,5,\na1,Set this to 100,attention,100,5\n"


async def with_checks(engine, content=ITEMS + GOLD, **settings):
    return await create_launched_campaign(engine, content, **{"checks_percent": 50, "items_per_hit": 5} | settings)


async def hits_with_checks(engine, campaign, *, want=1, tries=60):
    """Of one person's HITs, answered one after another with 42 for everything, those that showed a check."""
    me, found = await create_annotator(engine, campaign), []
    for _ in range(tries):
        hit = await try_to_lease_hit(engine, me)
        if {"g1", "g2", "a1"} & {*hit.ids}:
            found.append(hit)
        await submit_scores(engine, me, hit, scores=[42.0] * len(hit.items))
        if len(found) == want:
            break
    return found


async def test_a_check_takes_the_place_of_an_item_and_looks_like_one(engine):
    campaign = await with_checks(engine)
    (hit,) = await hits_with_checks(engine, campaign)
    assert len(hit.items) == len({*hit.items}) == len(hit.texts) == 5
    assert all(0 <= number < 30 for number in hit.items)
    (place,) = [place for place, name in enumerate(hit.ids) if not name.startswith("v")]
    assert hit.texts[place] in {"to walk", "to flummox", "Set this to 100"}
    assert f"v{hit.items[place]}" not in hit.ids


async def test_what_is_said_of_a_check_is_stored_apart_and_never_scored(engine):
    campaign = await with_checks(engine)
    (hit,) = await hits_with_checks(engine, campaign)
    ((items, given),) = await fetch_rows(engine, "SELECT items, values FROM responses WHERE hit_id = :hit", hit=hit.id)
    assert [f"v{item}" for item in items] == [name for name in hit.ids if name.startswith("v")]
    assert given == [42.0] * 4
    assert await fetch_rows(engine, "SELECT hit_id, value FROM check_answers") == [(hit.id, 42.0)]
    assert await fetch_value(engine, "SELECT count(*) FROM items") == 30
    judged = await fetch_value(engine, "SELECT sum(judgments) FROM posteriors")
    assert judged == await fetch_value(engine, "SELECT sum(cardinality(items)) FROM responses")


async def test_a_check_is_at_its_place_again_after_a_reload(engine):
    campaign = await with_checks(engine)
    me = await create_annotator(engine, campaign)
    for _ in range(40):
        hit = await try_to_lease_hit(engine, me)
        again = await try_to_lease_hit(engine, me)
        assert (again.items, again.ids, again.texts) == (hit.items, hit.ids, hit.texts)
        if not all(name.startswith("v") for name in hit.ids):
            return
        await submit_scores(engine, me, hit, scores=[1.0] * 5)
    pytest.fail("no check in forty HITs")


async def test_nobody_sees_a_check_twice_and_when_all_were_seen_no_hit_has_one(engine):
    campaign = await with_checks(engine, judgments_per_item=50, checks_percent=50)
    hits = await hits_with_checks(engine, campaign, want=99, tries=40)
    seen = [name for hit in hits for name in hit.ids if not name.startswith("v")]
    assert sorted(seen) == ["a1", "g1", "g2"]


async def places_of_checks(engine, campaign, people, *, hits):
    """For each person who answers so many HITs, the numbers of those that showed a check."""
    places = []
    for person in range(people):
        me, mine = await create_annotator(engine, campaign, f"p{person}"), []
        for number in range(hits):
            hit = await try_to_lease_hit(engine, me)
            if {"g1", "g2", "a1"} & {*hit.ids}:
                mine.append(number)
            await submit_scores(engine, me, hit, scores=[42.0] * len(hit.items))
        places.append(mine)
    return places


async def test_in_visits_of_as_many_tasks_everyone_meets_all_checks_at_places_that_differ(engine):
    settings = {"checks_percent": 25, "hits_per_annotator": 12, "judgments_per_item": 500}
    campaign = await with_checks(engine, **settings)
    places = await places_of_checks(engine, campaign, 12, hits=12)
    assert [len(mine) for mine in places] == [3] * 12
    used = [number for mine in places for number in mine]
    assert len({*used}) >= 9  # nearly every place of the visit; a few are missed by chance
    assert len({tuple(mine) for mine in places}) >= 10


async def test_a_smaller_share_of_a_limited_visit_shows_as_many_checks_to_everyone(engine):
    settings = {"checks_percent": 20, "hits_per_annotator": 10, "judgments_per_item": 500}
    places = await places_of_checks(engine, await with_checks(engine, **settings), 8, hits=10)
    assert [len(mine) for mine in places] == [2] * 8


COPIES = [CheckToMark(f"v{k}", {"expected": "80", "tolerance": "10"}) for k in range(6)]


async def with_copies_of_items(engine, **settings):
    """A campaign of 12 items, 6 of which also have a copy among the gold items."""
    content = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(12))
    campaign = await create_draft(
        engine, **{"checks_percent": 50, "items_per_hit": 4, "judgments_per_item": 9} | settings
    )
    await import_items(engine, campaign, content)
    async with engine.begin() as connection:
        await turn_draft_items_into_checks_or_refuse(connection, campaign.slug, COPIES, kind="gold", keeps_items=True)
    return await apply_action(engine, campaign, "launch")


async def ids_shown_in_order(engine, campaign, *, most=40):
    """The ids that one person is shown, HIT after HIT, until no HIT is left."""
    me, shown = await create_annotator(engine, campaign), []
    for _ in range(most):
        hit = (await find_or_lease_next_hit(engine, me)).hit
        if hit is None:
            break
        shown.append([*hit.ids])
        await submit_scores(engine, me, hit, scores=[42.0] * len(hit.items))
    return shown


@pytest.mark.parametrize("seed", range(8))
async def test_nobody_is_asked_about_an_item_and_its_copy_among_the_gold_items(engine, seed):
    campaign = await with_copies_of_items(engine, repeat_items=False, seed=seed)
    shown = [name for hit in await ids_shown_in_order(engine, campaign) for name in hit]
    texts = [name.removesuffix(" (gold)") for name in shown]
    assert len(texts) == len({*texts}) == 12


async def test_two_visits_of_a_person_that_draw_at_once_show_no_item_and_its_copy(engine):
    campaign = await with_copies_of_items(engine, repeat_items=False, judgments_per_item=500)
    cache = PosteriorCache()
    for person in range(40):  # most of them draw no check, or one that fits
        visits = [await create_annotator(engine, campaign, f"p{person}", assignment=name) for name in ("one", "two")]
        requests = [NextHitRequest(AssignmentQuery(visit), NOW) for visit in visits]
        async with borrow_autocommit_driver(engine) as connection:
            outcomes = await find_or_lease_next_hits(connection, campaign.id, requests, cache=cache)
        ids_by_hit = {
            outcome.hit.id: outcome.hit.ids for outcome in outcomes if isinstance(outcome, NextHit) and outcome.hit
        }
        texts = [name.removesuffix(" (gold)") for ids in ids_by_hit.values() for name in ids]
        assert len(texts) == len({*texts}) >= 4


async def test_a_copy_that_is_added_to_a_running_campaign_is_never_shown_to_who_saw_the_item(engine):
    header = "id,text,check,expected,tolerance,copy_of\n"
    items = "".join(f"v{k},verb {k},,,,\n" for k in range(12))
    campaign = await create_draft(engine, checks_percent=50, items_per_hit=4, judgments_per_item=9, repeat_items=False)
    await import_items(engine, campaign, header + items + "g,to walk,gold,80,10,\n")
    campaign = await apply_action(engine, campaign, "launch")
    me, cache = await create_annotator(engine, campaign), PosteriorCache()
    shown: list[str] = []
    while (hit := (await find_or_lease_next_hit(engine, me, cache=cache)).hit) is not None:
        if not shown:
            copies = "".join(f"c{k},verb {k},gold,80,10,v{k}\n" for k in range(12))
            await import_items(engine, campaign, header + copies)
        shown += hit.ids
        await submit_scores(engine, me, hit, scores=[42.0] * len(hit.items))
    texts = [name.replace("c", "v") for name in shown]
    assert len(texts) == len({*texts}) >= 12
    assert any(name.startswith("c") for name in shown)


async def test_a_person_who_met_the_copies_of_all_items_left_has_finished_and_others_get_the_items(engine):
    campaign = await with_copies_of_items(engine, repeat_items=False, judgments_per_item=1)
    shown = [name for hit in await ids_shown_in_order(engine, campaign) for name in hit]
    copies = {name.removesuffix(" (gold)") for name in shown if name.endswith("(gold)")}
    assert copies
    assert (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign))).reason == "seen_all"
    hit = (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "another"))).hit
    assert hit
    assert {name.removesuffix(" (gold)") for name in hit.ids} & copies


async def test_an_item_comes_after_its_copy_only_once_all_others_came_if_items_are_shown_again(engine):
    campaign = await with_copies_of_items(engine, repeat_items=True)
    shown = [name for hit in await ids_shown_in_order(engine, campaign, most=3) for name in hit]
    texts = [name.removesuffix(" (gold)") for name in shown]
    assert len(texts) == len({*texts}) == 12


async def test_a_hit_is_the_last_one_if_the_person_met_copies_of_all_items_left_also_when_it_is_shown_again(engine):
    campaign = await with_copies_of_items(engine, repeat_items=False, judgments_per_item=1)
    me, cache, are_last = await create_annotator(engine, campaign), PosteriorCache(), []
    while (next_hit := await find_or_lease_next_hit(engine, me, cache=cache)).hit is not None:
        again = await find_or_lease_next_hit(engine, me, cache=cache)
        are_last.append([is_last_hit_as_far_as_known(cache, shown) for shown in (next_hit, again)])
        await submit_scores(engine, me, next_hit.hit, scores=[42.0] * len(next_hit.hit.items))
    assert are_last == [[False, False]] * (len(are_last) - 1) + [[True, True]]


async def test_a_process_that_has_drawn_no_hit_yet_shows_a_held_one_without_loading_all_items(engine):
    campaign = await with_copies_of_items(engine)
    me = await create_annotator(engine, campaign)
    held, other_cache = await try_to_lease_hit(engine, me), PosteriorCache()
    assert (await try_to_lease_hit(engine, me, cache=other_cache)).id == held.id
    assert other_cache.loaded_index_or_none(campaign.id) is None


@pytest.mark.parametrize("items_per_hit", [1, 4])
async def test_everyone_gets_the_last_item_left_although_its_copy_could_be_drawn_instead(engine, items_per_hit):
    settings = {"design": "rating", "items_per_hit": items_per_hit, "repeat_items": False}
    campaign = await create_draft(engine, checks_percent=50, judgments_per_item=20, **settings)
    await import_items(engine, campaign, "id,text\nv0,verb 0\nv1,verb 1\n")
    async with engine.begin() as connection:
        await turn_draft_items_into_checks_or_refuse(
            connection, campaign.slug, COPIES[:1], kind="gold", keeps_items=True
        )
    await apply_action(engine, campaign, "launch")
    await execute_sql(engine, "UPDATE posteriors SET judgments = 20 WHERE subject > 0")
    for number in range(12):
        hit = (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, f"p{number}"))).hit
        assert hit is not None
        assert hit.ids == ["v0"]


async def test_a_check_that_is_left_out_is_missing_like_any_item(engine):
    campaign = await with_checks(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    while all(name.startswith("v") for name in hit.ids):
        await submit_scores(engine, me, hit, scores=[1.0] * 5)
        hit = await try_to_lease_hit(engine, me)
    place = next(place for place, name in enumerate(hit.ids) if not name.startswith("v"))
    short = hit.items[:place] + hit.items[place + 1 :]
    with pytest.raises(Invalid, match=f"Not all items have a score yet: {place + 1} of 5"):
        await submit_scores(engine, me, type(hit)(hit.id, short, [], [], {}, hit.expires_at), scores=[1.0] * 4)
    assert await fetch_value(engine, "SELECT count(*) FROM check_answers") == 0


async def test_a_changed_answer_is_shown_again_as_it_was_changed_also_of_a_check(engine):
    campaign = await with_checks(engine, checks_percent=50)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    while all(name.startswith("v") for name in hit.ids):
        await submit_scores(engine, me, hit, scores=[1.0] * 5)
        hit = await try_to_lease_hit(engine, me)
    told = await submit_scores(engine, me, hit, scores=[42.0] * 5)
    changed = Answer(dict.fromkeys(hit.items, 90.0))
    async with borrow_autocommit_driver(engine) as connection:
        await undo.replace_answer_and_return_receipt_or_refuse(connection, me, hit.id, told.seq, changed, now=NOW)
        again = await undo.load_last_answer_for_change_or_refuse(connection, me, now=NOW)
    shown = {value for name, value in again.form.items() if name.startswith("score-")}
    assert shown == {"90"}
    assert await fetch_rows(engine, "SELECT value FROM check_answers") == [(42.0,)]  # what counts is what came first


async def test_rules_see_which_checks_were_met(engine):
    campaign = await with_checks(engine, judgments_per_item=50)
    await hits_with_checks(engine, campaign, want=3, tries=60)
    async with engine.begin() as connection:
        (one,) = inputs.build_behaviours_by_annotator(*await load_design_and_inputs(connection, campaign)).values()
    assert one.gold_met.tolist() == [False, False]
    assert one.attention_met.tolist() == [False]


async def test_the_page_of_annotators_says_how_many_were_met(engine, researcher):
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,42,1\ng2,to be,gold,90,1\n", judgments_per_item=50)
    await hits_with_checks(engine, campaign, want=2)
    await create_annotator(engine, campaign, "another")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert '<td class="figure" data-head="Checks passed">1 of 2</td>' in page
    assert page.count("of 2</td>") == 1
    assert "<dd>1 of 2</dd>" in (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text


async def load_design_and_inputs(connection, campaign):
    return campaign.design, await inputs.load_rule_inputs(connection, campaign.criteria[0])


PAIRS = "id,text,check,expected\n" + "".join(f"v{k},verb {k},,\n" for k in range(30))
ORDERED = "g1,to walk,gold,1\ng2,to flummox,gold,2\ng3,to run,gold,1\n"


@pytest.mark.parametrize(
    ("settings", "rows", "wanted"),
    [
        ({"design": "pairwise"}, ORDERED, 2),
        ({"design": "best_worst"}, ORDERED + "g4,to be,gold,3\n", 4),
        ({"design": "rating"}, "g1,to walk,gold,90\n", 1),
    ],
)
async def test_where_no_place_is_free_a_check_is_a_hit_of_its_own_that_counts_as_answered(
    engine, settings, rows, wanted
):
    campaign = await create_launched_campaign(engine, PAIRS + rows, judgments_per_item=9, checks_percent=50, **settings)
    me = await create_annotator(engine, campaign)
    places = {1: [50.0], 2: [1.0, 2.0], 4: [1.0, 2.0, 2.0, 3.0]}[wanted]
    answered, hit = 0, await try_to_lease_hit(engine, me)
    while any(name.startswith("v") for name in hit.ids):
        await submit_scores(engine, me, hit, scores=places)
        answered, hit = answered + 1, await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=places)
    assert len(hit.ids) == len({*hit.items}) == wanted
    assert await fetch_value(engine, "SELECT count(*) FROM check_answers") == wanted
    assert (await find_or_lease_next_hit(engine, me)).assignment.hits_answered == answered + 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_where_checks_make_no_sense_they_are_refused_and_it_says_why(engine, subtests):
    for settings in (
        {"selection": "iterations"},
        {"design": "baseline", "design_settings": {"baseline": "v1"}},
        {"source_column": "text"},
    ):
        with subtests.test(settings=settings):
            with pytest.raises(Conflict, match="cannot have checks: ") as refused:
                await with_checks(
                    engine, ITEMS + GOLD.replace("80", "1").replace(",5,", ",2,"), **settings | {"items_per_hit": None}
                )
            assert refused.value.code == "no_checks_here"


async def test_a_row_that_is_no_check_imports_nothing_and_names_its_line(engine, subtests):
    for row, code in (
        ("g,x,silver,80,\n", "check_unknown"),
        ("g,x,gold,,\n", "expected_missing"),
        ("g,x,gold,many,\n", "expected_unreadable"),
        ("g,x,gold,400,\n", "expected_impossible"),
        ("v3,x,gold,4,\n", "id_twice"),
    ):
        with subtests.test(row=row, code=code):
            with pytest.raises(Invalid, match=r"[Ll]ine 32") as refused:
                await with_checks(engine, ITEMS + row)
            assert (refused.value.code, refused.value.details["line"]) == (code, 32)
            assert await fetch_value(engine, "SELECT count(*) FROM items") == 0


def test_a_check_stands_where_it_is_put():
    mixed = [PlacedCheck(0, 7, 21), PlacedCheck(2, 3, 22)]
    assert shown_numbers_of_items_and_checks([1, 2, 3], mixed) == [21, 1, 22, 2, 3]


@pytest.mark.parametrize(("seen", "lent"), [(range(20), {*range(20, 30)}), (range(30), {*range(5, 30)})])
def test_a_check_has_a_number_that_nobody_has_read_another_text_under_as_long_as_there_is_one(seen, lent):
    hits = [
        draw_check_placements_for_hit_or_none([7], range(5), 30, np.random.default_rng(seed), seen)
        for seed in range(30)
    ]
    assert {one.shown_number for hit in hits for one in hit or ()} <= lent


async def test_a_hit_with_a_check_is_asked_afresh_when_another_revision_comes_meanwhile(engine, monkeypatch):
    campaign = await with_checks(engine, judgments_per_item=50, checks_percent=50, repeat_items=True)
    me, cache, asked = await create_annotator(engine, campaign), PosteriorCache(), []

    async def and_then_it_comes(*where, **how):
        proposal = await propose_hit_or_none(*where, **how)
        asked.append(proposal)
        if len(asked) % 2:
            cache.indexes.clear()
        return proposal

    monkeypatch.setattr("app.annotation.hits.leases.propose_hit_or_none", and_then_it_comes)
    for _ in range(20):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me, cache=cache), scores=[42.0] * 5)
        asked.clear()
    assert await fetch_value(engine, "SELECT count(*) FROM check_answers") == 3


async def test_on_the_page_nothing_tells_a_check_from_an_item(engine, client):
    campaign = await with_checks(engine, checks_percent=50)
    page = (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text
    for _ in range(30):
        texts = re.findall(r"verb \d+|to walk|to flummox|Set this to 100", page)
        if {"to walk", "to flummox", "Set this to 100"} & {*texts}:
            break
        page = (await client.post(f"/link/{campaign.link_key}", data=form_fields(page))).text
    assert len({*re.findall(r'name="score-(\d+)"', page)}) == 5
    form = page.partition("<form")[2].partition("</form")[0].replace(form_fields(page)["token"], "")  # which is random
    assert not re.search(r"gold|attention|check_|expected|g1|g2|a1\b", form)


async def test_a_campaign_whose_settings_leave_no_room_for_checks_is_not_launched_with_them(engine):
    with pytest.raises(Conflict, match="checks need streaming"):
        await create_launched_campaign(engine, ITEMS, checks_percent=10, selection="iterations")


async def test_a_copy_has_the_checks(engine):
    campaign = await with_checks(engine)
    async with engine.begin() as connection:
        copy = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    assert await fetch_value(engine, "SELECT count(*) FROM check_items WHERE campaign_id = :copy", copy=copy.id) == 3
    assert await fetch_value(engine, "SELECT has_checks FROM campaigns WHERE id = :copy", copy=copy.id)


async def test_verify_finds_an_answer_to_a_check_that_is_gone(engine):
    campaign = await with_checks(engine)
    await hits_with_checks(engine, campaign)
    assert await replay_is_clean(engine, campaign.slug)
    await execute_sql(engine, "DELETE FROM check_answers")
    assert not await replay_is_clean(engine, campaign.slug)


async def test_checks_that_the_way_of_asking_chosen_since_cannot_meet_are_refused_at_the_launch(engine):
    campaign = await create_draft(engine, checks_percent=20)
    await import_items(engine, campaign, ITEMS + GOLD)
    chosen = {"design": "ordinal", "design_settings": {"labels": ["low", "high"]}}
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda before: before.model_copy(update=chosen)
        )
    with pytest.raises(Conflict, match="No answer can meet the check “g1”: 80 is not a possible") as refused:
        await apply_action(engine, campaign)
    assert refused.value.code == "expected_impossible"


async def test_what_takes_the_place_of_all_items_takes_that_of_the_checks_too(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, ITEMS + GOLD)
    await import_items(engine, campaign, ITEMS, replace=True)
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0
    assert not await fetch_value(engine, "SELECT has_checks FROM campaigns")


@pytest.mark.parametrize(("first", "then"), [(GOLD, "g1,to be,,,\n"), ("g1,to be,,,\n", GOLD), (GOLD, GOLD)])
async def test_a_check_and_an_item_never_share_an_id(engine, first, then):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, ITEMS + first)
    with pytest.raises(Invalid, match="already has “g1”") as refused:
        await import_items(engine, campaign, ITEMS.partition("\n")[0] + "\n" + then)
    assert refused.value.code == "id_taken"


async def test_rows_without_ids_are_numbered_over_items_and_checks(engine):
    campaign = await create_draft(engine)
    rows = "text,check,expected\na,,\nb,gold,80\nc,,\n"
    for _ in range(2):
        await import_items(engine, campaign, rows, identifier=None)
    assert await fetch_rows(engine, "SELECT external_id FROM items ORDER BY number") == [("1",), ("3",), ("4",), ("6",)]
    assert await fetch_rows(engine, "SELECT external_id FROM check_items ORDER BY number") == [("2",), ("5",)]


async def test_json_lines_of_which_not_the_first_is_a_check_have_checks_too(engine):
    campaign = await create_draft(engine)
    rows = '{"id": "a", "text": "x"}\n{"id": "g", "text": "y", "check": "gold", "expected": 80}\n'
    assert await import_items(engine, campaign, rows, "items.jsonl") == 1
    assert await fetch_rows(engine, "SELECT external_id, expected FROM check_items") == [("g", {"value": 80.0})]


async def answered_until(client, campaign, which, **given):
    """Somebody answers their HITs with 42 for everything; the reply after the first one that shows one of these."""
    link = f"/link/{campaign.link_key}"
    page = (await client.post(link, follow_redirects=True)).text
    for _ in range(60):
        fields = {name: "42" if name.startswith("score-") else said for name, said in form_fields(page).items()}
        there = any(f">{text}<" in page.partition('<form class="answer"')[2] for text in which)
        page = (await client.post(link, data=fields | given)).text
        if there:
            return page
    pytest.fail("no check in sixty HITs")


async def test_after_a_gold_item_people_read_what_was_expected_where_the_campaign_says_so(engine, client):
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,80,10\n", gold_feedback=True)
    page = await answered_until(client, campaign, ["to walk"])
    assert "From your last task: another answer was expected" in page
    told = page.partition('<section class="notice told"')[2].partition("</section>")[0]
    assert " ".join(re.sub(r"<[^>]*>", " ", told).split()).endswith(
        "expected to walk ✗ Not as expected Yours: 42 Expected: 70 to 90"
    )
    fields = {name: "42" if name.startswith("score-") else said for name, said in form_fields(page).items()}
    assert "From your last task" not in (await client.post(f"/link/{campaign.link_key}", data=fields)).text


@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("g1,to walk,gold,80,10\n", {"gold_feedback": False}),
        ("a1,to walk,attention,80,10\n", {"gold_feedback": True}),
    ],
)
async def test_nothing_is_said_of_attention_items_or_where_the_campaign_does_not_say_so(
    engine, client, check, settings
):
    campaign = await with_checks(engine, ITEMS + check, **settings)
    assert "From your last task" not in await answered_until(client, campaign, ["to walk"])


async def test_what_was_met_is_told_too_with_labels(engine, client):
    labels = {"design": "categories", "design_settings": {"labels": ["noun", "verb"]}}
    campaign = await with_checks(engine, ITEMS + "g1,to walk,gold,verb,\n", gold_feedback=True, **labels)
    link = f"/link/{campaign.link_key}"
    page = (await client.post(link, follow_redirects=True)).text
    for _ in range(60):
        there = ">to walk<" in page
        page = (await client.post(link, data=form_fields(page) | chosen_in(page))).text
        if there:
            break
    assert "From your last task: as expected" in page
    assert "Yours: verb" in page


def chosen_in(page):
    """The last label for every item."""
    return dict(re.findall(r'<input[^>]* name="([^"]+)"[^>]* type="radio"[^>]* value="([^"]+)"', page)) or dict(
        re.findall(r'type="radio" name="([^"]+)" value="([^"]+)"', page)
    )


async def test_of_an_order_people_read_both(engine, client):
    campaign = await create_launched_campaign(
        engine, PAIRS + ORDERED, judgments_per_item=9, checks_percent=50, design="pairwise", gold_feedback=True
    )
    link = f"/link/{campaign.link_key}"
    page = (await client.post(link, follow_redirects=True)).text
    for _ in range(60):
        there = ">to flummox<" in page
        page = (await client.post(link, data=form_fields(page) | chosen_in(page))).text
        if there:
            break
    assert "Expected, the best first" in page
    assert "Yours, the best first" in page
    assert re.search(r"to (walk|run)</span></li><li><span[^>]*>to flummox", page)


async def test_a_gold_item_with_a_score_has_feedback_beside_one_with_a_place(engine):
    content = ITEMS + "g1,to walk,gold,80,10\ng2,to run,gold,#1,\n"
    campaign = await with_checks(engine, content, items_per_hit=2, gold_feedback=True)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    while {*hit.ids} != {"g1", "g2"}:
        await submit_scores(engine, me, hit)
        hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[42.0, 42.0])
    assignment = (await find_or_lease_next_hit(engine, me)).assignment
    async with borrow_autocommit_driver(engine) as connection:
        found = await gold_feedback.load_gold_feedback_or_none(connection, assignment, hit.id)
    assert found is not None
    ((feedback,),) = [criterion.feedback for criterion in found.by_criterion]
    assert (feedback.kind, feedback.met, hit.ids[feedback.position]) == ("score", False, "g1")


async def test_a_report_that_a_check_does_not_load_is_kept_and_shown(app, client, researcher):
    """Each once for each person; the items beside it are reported as before."""
    engine = app.state.database
    campaign, address, form = await with_checks(engine), "", dict[str, str]()
    for who in ("p1", "p2"):
        address = f"/prolific/{campaign.link_key}?PROLIFIC_PID={who}&STUDY_ID=s&SESSION_ID=t"
        form = form_fields((await client.get(address)).text)
        while not await fetch_value(
            engine, "SELECT count(*) FROM hit_checks WHERE hit_id = :hit", hit=int(form["hit"])
        ):
            form = form_fields((await client.post(address, data=form)).text)
        for position in (*range(5), *range(5)):
            sent = {"token": form["token"], "hit": form["hit"], "broken": f"{position:02}"}
            assert (await client.post(address, data=sent)).status_code == 200
    assert await fetch_value(engine, "SELECT count(*) FROM media_reports") == 8
    shown = await fetch_rows(engine, "SELECT check_number FROM hit_checks ORDER BY 1")
    assert len(shown) == 2
    assert await fetch_rows(engine, "SELECT check_number FROM check_reports ORDER BY 1") == shown
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    assert "did not load for" in page
    other = {"token": form["token"], "hit": str(int(form["hit"]) - 1), "broken": "00"}
    await client.post(address, data=other)
    assert await fetch_value(engine, "SELECT count(*) FROM check_reports") == 2
    assert await fetch_value(engine, "SELECT count(*) FROM media_reports") == 8
