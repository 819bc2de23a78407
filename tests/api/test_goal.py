"""Programs hear how near a campaign is to its goal."""

from app.goals.progress import words
from tests.serving.campaigns import running
from tests.stopping.nearly_agreed import GOAL, answered


async def test_programs_hear_how_near_a_goal_is(engine, program):
    campaign = await running(engine, items=10, **GOAL)
    address = f"/api/v1/campaigns/{campaign.slug}/goal"
    before = (await program.get(address)).json()
    assert before == {"goal": words(campaign), "now": 0.0, "wanted": 0.95, "reached": False}
    await answered(engine, campaign, 6)
    after = (await program.get(address)).json()
    assert after["reached"]
    assert 0.95 <= after["now"] <= 1


async def test_programs_hear_that_there_is_no_goal_or_nobody_could_answer_yet(engine, program):
    without, draft = await running(engine, name="Without"), await running(engine, name="Draft", launched=False, **GOAL)
    for campaign, code in ((without, "no_goal"), (draft, "not_launched")):
        refused = await program.get(f"/api/v1/campaigns/{campaign.slug}/goal")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, code)
