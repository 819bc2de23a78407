"""Checks of comparisons that are shown together: gold pairs with the choice that is expected."""

import pytest

from app.errors import Conflict
from tests.annotation.hits.campaigns import create_annotator, fetch_rows, submit_scores, try_to_lease_hit
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import apply_action, create_draft, create_launched_campaign, import_items

HEADER = "id,text,check,expected,check_set\n"
ITEMS = HEADER + "".join(f"v{k},verb {k},,,\n" for k in range(60))
PAIRS = "".join(
    f"{name}{set_},{name} {set_},gold,{place},{set_}\n" for set_ in "xyz" for name, place in (("a", 1), ("b", 2))
)


@pytest.fixture
def engine(app):
    return app.state.database


async def test_checks_of_a_set_are_shown_together_and_with_no_others(engine):
    campaign = await create_launched_campaign(
        engine,
        ITEMS + PAIRS + "c,one,gold,1,\nd,two,gold,2,\n",
        design="pairwise",
        checks_percent=50,
        judgments_per_item=20,
    )
    me = await create_annotator(engine, campaign)
    shown: list[set[str]] = []
    while len(shown) < 4:
        hit = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, hit, scores=[1.0, 2.0])
        if not any(name.startswith("v") for name in hit.ids):
            shown.append({*hit.ids})
    assert sorted(shown, key=min) == [{"ax", "bx"}, {"ay", "by"}, {"az", "bz"}, {"c", "d"}]


@pytest.mark.parametrize("rows", ["a,one,gold,1,x\n", "a,one,gold,1,x\nb,two,gold,1,x\n", PAIRS + "c,one,gold,1,x\n"])
async def test_a_set_that_cannot_be_a_task_is_told_at_the_launch(engine, rows):
    campaign = await create_draft(engine, design="pairwise", checks_percent=20)
    await import_items(engine, campaign, ITEMS + rows)
    with pytest.raises(Conflict, match="The set “x” has") as refused:
        await apply_action(engine, campaign)
    assert refused.value.code == "check_set_size"


async def test_two_items_become_a_gold_pair_by_the_expected_choice(researcher, api_client, engine):  # noqa: F811
    campaign = await create_draft(engine, design="pairwise", checks_percent=20)
    await import_items(engine, campaign, "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(8)))
    address = f"/admin/campaigns/{campaign.slug}/items"
    asked = await researcher.post(f"{address}/chosen", data={"item": ["v1", "v2"], "action": "gold"})
    assert "Expected choice" in asked.text
    none = await researcher.post(f"{address}/checks", data={"item": ["v1", "v2"], "action": "gold", "better": "v7"})
    assert none.status_code == 422
    done = await researcher.post(f"{address}/checks", data={"item": ["v1", "v2"], "action": "gold", "better": "v2"})
    assert done.status_code == 303, done.text
    checks = [{"id": "v3", "expected": "1", "check_set": "p"}, {"id": "v4", "expected": "2", "check_set": "p"}]
    reply = await api_client.post(
        f"/api/v1/campaigns/{campaign.slug}/items/checks", json={"kind": "gold", "checks": checks}
    )
    assert reply.status_code == 200, reply.text
    stored = "SELECT external_id, (expected->>'place')::int, fields->>'check_set' FROM check_items ORDER BY number"
    assert await fetch_rows(engine, stored) == [
        ("v1", 2, "v1 | v2"), ("v2", 1, "v1 | v2"), ("v3", 1, "p"), ("v4", 2, "p")]  # fmt: skip
    await apply_action(engine, campaign)


async def test_more_than_two_items_of_pairs_are_better_or_worse_ones(engine, researcher):
    campaign = await create_draft(engine, design="pairwise")
    await import_items(engine, campaign, "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6)))
    address = f"/admin/campaigns/{campaign.slug}/items"
    chosen = {"action": "gold", "item": ["v0", "v1", "v2", "v3"]}
    asked = (await researcher.post(f"{address}/chosen", data=chosen)).text
    assert asked.count("<select name=") == 4
    assert "rank" not in asked.partition('class="chosen"')[2].partition("</form>")[0]
    assert "Say of each item whether it is one of the better or of the worse ones." in asked
    done = await researcher.post(f"{address}/checks", data=chosen | {"expected": ["1", "1", "2", "2"]})
    assert done.status_code == 303
    places = "SELECT external_id, expected ->> 'place' FROM check_items ORDER BY external_id"
    assert [place for _, place in await fetch_rows(engine, places)] == ["1", "1", "2", "2"]
