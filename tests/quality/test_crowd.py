"""A small crowd through the real pages: the preset `strict` holds those who do not care, and nobody else."""

from benchmarks.crowd_of_40 import Kind, run_seed

OF_12: dict[Kind, int] = {"careful": 9, "straight": 1, "fast": 1, "fails gold": 1}


async def test_strict_holds_the_careless_of_a_small_crowd(app):
    app.state.campaign_monitor.request_scan = lambda _campaign: None
    found = await run_seed(app, 5, OF_12, rounds=22, with_careful_campaign=False)
    app.dependency_overrides.clear()
    assert found.held == OF_12 | {"careful": 0}
    assert found.after > 0.9
