"""Gold and attention items among the outputs of systems: each belongs to a segment, and none is a system's."""

import re

import pytest

from app.annotation.hits import gold_feedback, submission, undo
from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import lifecycle
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.errors import Conflict
from app.quality import checks
from app.record.campaign import load_campaign_by_slug_or_refuse
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
from tests.annotation.hits.criteria import criteria_settings, submit_by_criterion
from tests.annotation.hits.systems import SYSTEMS, create_campaign_of_systems
from tests.campaigns.drafts import apply_action, create_draft, import_items, replay_is_clean

HEADER = "system,segment,output,source,check,expected,tolerance,check_set\n"
OUTPUTS = HEADER + "".join(f"{system},s{k},{system} on {k},source {k},,,,\n" for k in range(8) for system in SYSTEMS)
GOLD = "bad,s1,broken 1,,gold,0,15,\nbad,s4,broken 4,,gold,0,15,\nset,s6,Set this to 100,,attention,100,5,\n"


async def with_checks(engine, rows=GOLD, *, outputs=OUTPUTS, always=False, **settings):
    """A campaign in whose HITs checks are shown half the time, or always if any are left."""
    chosen = {"items_per_hit": 3, "checks_percent": 50, "judgments_per_item": 200} | settings
    campaign = await create_campaign_of_systems(engine, outputs + rows, **chosen)
    if always:
        await execute_sql(engine, "UPDATE campaigns SET checks_percent = 100")
    return campaign


def has_check(hit):
    return any(" / " in name for name in hit.ids)


async def hits_of_one_person(engine, campaign, *, most=8, answer=42.0, cache=None):
    """The HITs of a person who gives the same answer everywhere, one after another."""
    me, cache, hits = await create_annotator(engine, campaign), cache or PosteriorCache(), []
    for _ in range(most):
        if (hit := (await find_or_lease_next_hit(engine, me, cache=cache)).hit) is None:
            break
        await submit_scores(engine, me, hit, scores=[answer] * len(hit.items))
        hits.append(hit)
    return hits


async def next_hit_with_check(engine, campaign, me, *, scores=42.0, tries=40):
    for _ in range(tries):
        hit = await try_to_lease_hit(engine, me)
        if has_check(hit):
            return hit
        await submit_scores(engine, me, hit, scores=[scores] * len(hit.items))
    pytest.fail("no check in forty HITs")


async def test_a_check_takes_the_place_of_an_output_for_its_segment_and_looks_like_one(engine):
    hits = await hits_of_one_person(engine, await with_checks(engine))
    shown = [(name, text, hit) for hit in hits for name, text in zip(hit.ids, hit.texts, strict=True) if " / " in name]
    assert shown
    for name, text, hit in shown:
        assert (name, text) in {
            ("bad / s1", "broken 1"), ("bad / s4", "broken 4"), ("set / s6", "Set this to 100")}  # fmt: skip
        number = name[-1]
        assert hit.source_and_reference.source == f"source {number}"
        assert len(hit.items) == len({*hit.items}) == 3
        assert {other for other in hit.texts if other != text} <= {f"{system} on {number}" for system in SYSTEMS}
    assert len({hit.segment for hit in hits}) == len(hits) == 8


async def test_a_check_is_stored_apart_and_never_counts_as_a_judgment_of_a_system(engine):
    campaign = await with_checks(engine)
    hits = await hits_of_one_person(engine, campaign)
    checks_shown = sum(has_check(hit) for hit in hits)
    assert await fetch_value(engine, "SELECT count(*) FROM check_answers WHERE value = 42") == checks_shown > 0
    judged = sum(len(hit.items) for hit in hits) - checks_shown
    assert await fetch_value(engine, "SELECT sum(cardinality(items)) FROM responses") == judged
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == judged
    assert await fetch_value(engine, "SELECT count(*) FROM items") == len(SYSTEMS)
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_hit_with_a_check_shows_its_segment_as_often_as_the_share_of_tasks_says(engine):
    """Two of eight segments have checks, and everyone sees both in the two of their four tasks that have one."""
    rows = "".join(f"bad,s{k},broken {k},,gold,0,15,\n" for k in (1, 4))
    campaign = await with_checks(engine, rows, hits_per_annotator=4, repeat_items=False)
    for name in range(6):
        me, cache, shown = await create_annotator(engine, campaign, f"p{name}"), PosteriorCache(), []
        while (hit := (await find_or_lease_next_hit(engine, me, cache=cache)).hit) is not None:
            shown += [check for check in hit.ids if " / " in check]
            await submit_scores(engine, me, hit, scores=[1.0] * len(hit.items))
        assert sorted(shown) == ["bad / s1", "bad / s4"]


async def test_nobody_sees_a_check_twice_and_a_hit_whose_segment_has_none_is_as_before(engine):
    campaign = await with_checks(engine, repeat_items=True)
    hits = await hits_of_one_person(engine, campaign, most=24)
    shown = [name for hit in hits for name in hit.ids if " / " in name]
    assert sorted(shown) == ["bad / s1", "bad / s4", "set / s6"]
    assert all(len(hit.ids) == 3 for hit in hits)


LABELS = {"design_settings": {"labels": ["poor", "good"]}}


@pytest.mark.parametrize(
    ("settings", "rows", "places"),
    [
        ({"design": "categories", "items_per_hit": 1} | LABELS, "bad,s1,broken,,gold,poor,,\n", [1.0]),
        ({"design": "rating"}, "bad,s1,broken,,gold,0,15,\n", [50.0]),
        ({"items_per_hit": 2}, "bad,s1,broken,,gold,0,15,\nset,s1,Set to 100,,attention,100,,\n", [1.0, 2.0]),
        ({"design": "pairwise"}, "good,s1,human,,gold,1,,\nbad,s1,broken,,gold,2,,\n", [1.0, 2.0]),
        (
            {"design": "ranking", "items_per_hit": 3},
            "good,s1,human,,gold,1,,\nbad,s1,broken,,gold,2,,\nworse,s1,worse,,gold,3,,\n",
            [1.0, 2.0, 3.0],
        ),
        (
            {"design": "best_worst"},
            "good,s1,a,,gold,1,,x\nbad,s1,b,,gold,2,,x\nso,s1,c,,gold,2,,x\nworse,s1,d,,gold,3,,x\n",
            [1.0, 2.0, 2.0, 3.0],
        ),
    ],
)
async def test_where_no_place_is_free_the_task_consists_of_checks_of_one_segment(engine, settings, rows, places):
    campaign = await with_checks(engine, rows, **{"items_per_hit": None} | settings)
    me = await create_annotator(engine, campaign)
    answered, hit = 0, await try_to_lease_hit(engine, me)
    while not has_check(hit):
        await submit_scores(engine, me, hit, scores=places[: len(hit.items)])
        answered, hit = answered + 1, await try_to_lease_hit(engine, me)
    assert all(name.endswith(" / s1") for name in hit.ids)
    assert len(hit.ids) == len({*hit.items}) == len(places)
    assert (hit.segment, hit.source_and_reference) == (1, ("source 1", None))
    again = await try_to_lease_hit(engine, me)
    assert (again.items, again.texts, again.source_and_reference) == (hit.items, hit.texts, hit.source_and_reference)
    await submit_scores(engine, me, hit, scores=places)
    assert await fetch_value(engine, "SELECT count(*) FROM check_answers") == len(places)
    assert await fetch_value(engine, "SELECT count(*) FROM responses WHERE items = '{}' AND segment = 1") == 1
    assert (await find_or_lease_next_hit(engine, me)).assignment.hits_answered == answered + 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_check_has_a_place_beside_outputs_that_are_the_same(engine):
    """Bee says what ape says: a HIT with both shows one output, and the check beside it."""
    outputs = HEADER + "".join(
        f"{system},s{k},{words} {k},,,,,\n"
        for k in range(3)
        for system, words in (("ape", "same"), ("bee", "same"), ("cat", "other"))
    )
    rows = "".join(f"bad,s{k},broken {k},,gold,0,15,\n" for k in range(3))
    campaign = await with_checks(engine, rows, outputs=outputs, always=True, items_per_hit=4)
    hits = await hits_of_one_person(engine, campaign, most=3)
    assert [sorted(text[:-2] for text in hit.texts) for hit in hits] == [["broken", "other", "same"]] * 3
    assert await fetch_value(engine, "SELECT count(*) FROM check_answers") == 3
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 9
    assert await replay_is_clean(engine, campaign.slug)


async def test_with_only_two_systems_a_check_still_has_a_place(engine):
    outputs = HEADER + "".join(f"{system},s{k},{system} {k},,,,,\n" for k in range(3) for system in ("ape", "bee"))
    campaign = await with_checks(engine, "bad,s2,broken,,gold,0,15,\n", outputs=outputs, always=True)
    hits = await hits_of_one_person(engine, campaign, most=3)
    assert sorted(len(hit.ids) for hit in hits) == [2, 2, 3]


async def test_a_segment_whose_outputs_cannot_be_compared_shows_no_check_and_stops_nobody(engine):
    """Only one system has an output for the last segment."""
    rows = "ape,s8,alone,,,,,\nbad,s8,broken,,gold,0,15,\n"
    campaign = await with_checks(engine, rows, always=True)
    hits = await hits_of_one_person(engine, campaign, most=9)
    assert len(hits) == 9


async def test_a_check_is_answered_by_each_criterion(engine):
    header = "system,segment,output,check,expected adequacy,expected fluency\n"
    outputs = header + "".join(f"{system},s{k},{system} {k},,,\n" for k in range(4) for system in SYSTEMS)
    settings = {"outputs": outputs, "always": True, "criteria": criteria_settings(2)}
    campaign = await with_checks(engine, "bad,s1,broken,gold,0,100\n", **settings)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    values = [0.0 if " / " in name else 42.0 for name in hit.ids]
    await submit_by_criterion(engine, me, hit, {"adequacy": values, "fluency": [99.0 - value for value in values]})
    assert await fetch_rows(engine, "SELECT value, other_values FROM check_answers") == [(0.0, [99.0])]
    assert await outcomes(engine, campaign) == [("gold", True)]
    assert await replay_is_clean(engine, campaign.slug)


async def outcomes(engine, campaign):
    async with engine.connect() as connection:
        loaded = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        return [(one.kind, one.met) for one in await checks.load_check_outcomes(connection, loaded)]


async def test_a_check_that_cannot_be_judged_is_failed_and_says_nothing_of_the_segment(engine):
    campaign = await with_checks(engine, always=True, cannot_be_judged=True, repeat_items=True)
    me = await create_annotator(engine, campaign)
    hit = await next_hit_with_check(engine, campaign, me)
    (item,) = [item for item, name in zip(hit.items, hit.ids, strict=True) if " / " in name]
    values = {other: 42.0 for other in hit.items if other != item}
    answer = Answer(values, unjudged={item: campaign.unjudged_reasons[0]})
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    assert await outcomes(engine, campaign) == [(await fetch_value(engine, KIND_OF_ONLY_ANSWER), False)]
    assert await fetch_value(engine, "SELECT sum(judgments) FROM posteriors") == 2
    assert (await find_or_lease_next_hit(engine, me)).assignment.not_judged == []
    assert await replay_is_clean(engine, campaign.slug)


KIND_OF_ONLY_ANSWER = "SELECT kind FROM check_answers JOIN check_items ON check_number = number"


async def test_a_changed_answer_shows_the_check_again_and_the_first_one_counts(engine):
    campaign = await with_checks(engine, always=True)
    me = await create_annotator(engine, campaign)
    hit = await next_hit_with_check(engine, campaign, me)
    told = await submit_scores(engine, me, hit, scores=[42.0] * 3)
    changed = Answer(dict.fromkeys(hit.items, 90.0))
    async with borrow_autocommit_driver(engine) as connection:
        await undo.replace_answer_and_return_receipt_or_refuse(connection, me, hit.id, told.seq, changed, now=NOW)
        again = await undo.load_last_answer_for_change_or_refuse(connection, me, now=NOW)
    assert (again.hit.texts, again.hit.source_and_reference) == (hit.texts, hit.source_and_reference)
    assert {value for name, value in again.form.items() if name.startswith("score-")} == {"90"}
    assert await fetch_rows(engine, "SELECT value FROM check_answers") == [(42.0,)]


async def test_feedback_on_a_gold_output_shows_the_source_above_it(engine):
    campaign = await with_checks(engine, "bad,s1,broken,,gold,0,15,\n", always=True, gold_feedback=True)
    me = await create_annotator(engine, campaign)
    hit = await next_hit_with_check(engine, campaign, me)
    await submit_scores(engine, me, hit, scores=[42.0] * 3)
    assignment = (await find_or_lease_next_hit(engine, me)).assignment
    async with borrow_autocommit_driver(engine) as connection:
        feedback = await gold_feedback.load_gold_feedback_or_none(connection, assignment, hit.id)
    assert feedback is not None
    assert [part.html for part in feedback.items.shared_context] == ["source 1"]
    assert [*feedback.items.items] == ["broken"]
    assert not feedback.is_as_expected


async def test_programs_get_no_checks(engine):
    campaign = await with_checks(engine, always=True)
    me = await create_annotator(engine, campaign, platform="api")
    for _ in range(8):
        hit = await try_to_lease_hit(engine, me)
        assert not has_check(hit)
        await submit_scores(engine, me, hit, scores=[42.0] * 3)


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"design": "pairwise"}, "bad,s1,broken,,gold,2,,\n"),
        ({"design": "pairwise"}, "bad,s1,broken,,gold,2,,\nworse,s1,worse,,gold,2,,\n"),
        ({"design": "pairwise"}, "good,s1,human,,gold,1,,\nbad,s2,broken,,gold,2,,\n"),
        ({"items_per_hit": 2}, "bad,s1,broken,,gold,0,15,\n"),
    ],
)
async def test_a_segment_whose_checks_do_not_fill_a_task_is_told_at_the_launch(engine, settings, rows):
    with pytest.raises(Conflict, match="The segment “s1” has") as refused:
        await with_checks(engine, rows, **{"items_per_hit": None} | settings)
    assert refused.value.code == "check_set_size"


async def test_a_campaign_with_a_baseline_has_no_checks(engine):
    settings = {"design": "baseline", "design_settings": {"baseline": "ape"}, "items_per_hit": None}
    with pytest.raises(Conflict, match="cannot have checks: ") as refused:
        await with_checks(engine, "good,s1,human,,gold,1,,\nbad,s1,broken,,gold,2,,\n", **settings)
    assert refused.value.code == "no_checks_here"


async def test_a_copy_has_the_checks_with_their_segments(engine):
    campaign = await with_checks(engine)
    async with engine.begin() as connection:
        copy = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    rows = "SELECT external_id, segment FROM check_items WHERE campaign_id = :copy ORDER BY number"
    assert await fetch_rows(engine, rows, copy=copy.id) == [("bad / s1", 1), ("bad / s4", 4), ("set / s6", 6)]
    await apply_action(engine, copy)
    assert any(has_check(hit) for hit in await hits_of_one_person(engine, copy))


async def test_checks_for_new_segments_join_a_running_campaign(engine):
    campaign = await with_checks(engine, "", always=True)
    cache = PosteriorCache()
    me = await create_annotator(engine, campaign)
    assert not has_check(await try_to_lease_hit(engine, me, cache=cache))
    new = HEADER + "bad,s9,broken 9,,gold,0,15,\n" + "".join(f"{name},s9,{name} on 9,,,,,\n" for name in SYSTEMS)
    await import_items(engine, campaign, new)
    await execute_sql(engine, "DELETE FROM hits")
    other = await create_annotator(engine, campaign, "other")
    hit = await try_to_lease_hit(engine, other, cache=cache)
    assert "bad / s9" in hit.ids
    await import_items(engine, campaign, HEADER + "bad,s2,broken 2,,gold,0,15,\n")
    await submit_scores(engine, other, hit, scores=[1.0] * 3)
    assert "bad / s2" in (await try_to_lease_hit(engine, other, cache=cache)).ids
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_draft_without_checks_may_name_a_share_of_tasks_for_them(engine):
    campaign = await create_draft(engine, items_per_hit=3, checks_percent=10)
    await import_items(engine, campaign, OUTPUTS)
    await apply_action(engine, campaign)
    assert await fetch_value(engine, "SELECT has_checks FROM campaigns") is False


@pytest.mark.parametrize("limits", [{"hits_per_annotator": 8}, {}])
async def test_who_judges_all_segments_meets_about_as_many_checks_as_the_share_of_tasks_says(engine, limits):
    """Three of eight segments have checks: the others come first where the checks would be lost otherwise."""
    campaign = await with_checks(engine, **limits, checks_percent=38, repeat_items=False)
    met = []
    for name in range(12):
        me, cache, shown = await create_annotator(engine, campaign, f"p{name}"), PosteriorCache(), 0
        while (hit := (await find_or_lease_next_hit(engine, me, cache=cache)).hit) is not None:
            shown += has_check(hit)
            await submit_scores(engine, me, hit, scores=[1.0] * len(hit.items))
        met.append(shown)
    if limits:
        assert met == [3] * 12
    else:
        assert sum(met) >= 24  # 36 at most; some lose one by chance


async def test_on_the_page_a_task_of_checks_alone_has_the_source_and_tells_nothing(engine, client):
    campaign = await with_checks(engine, "bad,s1,broken,,gold,0,15,\n", always=True, design="rating", items_per_hit=1)
    page = (await client.post(f"/link/{campaign.link_key}", follow_redirects=True)).text
    assert "broken" in page
    assert "source 1" in page
    fields = form_fields(page)
    form = page.partition("<form")[2].partition("</form")[0].replace(fields["token"], "")
    assert not re.search(r"gold|attention|check_|expected|bad|s1\b", form)
    answered = await client.post(f"/link/{campaign.link_key}", data=fields | {"score-0": "40"})
    assert answered.status_code == 200
    assert "broken" not in answered.text
    assert await fetch_rows(engine, "SELECT value FROM check_answers") == [(40.0,)]
