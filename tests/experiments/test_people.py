"""An experiment of the papers is repeated with people: each comes to one of its arms, by one link."""

import pytest

from app.errors import Conflict, Invalid
from app.experiments.people import ARMS, Wanted, set_up
from tests.serving.campaigns import NOW, execute, value, values


@pytest.fixture
def few_verbs(tmp_path, monkeypatch):
    """The first ten verbs alone."""
    from app.campaigns.demo import VERBS

    path = tmp_path / "verbs.csv"
    path.write_text("\n".join(VERBS.read_text().splitlines()[:11]) + "\n")
    monkeypatch.setattr("app.experiments.people.VERBS", path)


async def begun(engine, *, launch=True, **wanted):
    async with engine.begin() as connection:
        return await set_up(connection, Wanted(**{"name": "Verbs"} | wanted), launch=launch, now=NOW)


async def test_each_arm_is_a_campaign_on_the_same_items_that_asks_and_learns_in_its_way(engine, few_verbs):
    made = await begun(engine, judgments_per_item=4, judgments_per_annotator=20)
    assert [row.slug for row in made.campaigns.values()] == ["verbs-da", "verbs-ra", "verbs-easl"]
    settings = "design, update_law, rule, items_per_hit, hits_per_annotator, judgments_per_item, status"
    assert await values(engine, f"SELECT {settings} FROM campaigns ORDER BY id") == [
        ("rating", "easl", "scores", 1, 20, 4, "running"),
        ("ranking", "ra", "easl", 5, 4, 4, "running"),
        ("slider", "easl", "easl", 5, 4, 4, "running"),
    ]
    assert await values(engine, "SELECT DISTINCT count(*) FROM items GROUP BY campaign_id") == [(10,)]


async def test_of_two_experiments_of_one_name_the_second_is_refused(engine, few_verbs):
    await begun(engine, launch=False)
    with pytest.raises(Conflict) as refused:
        await begun(engine, name="VERBS")
    assert refused.value.code == "experiment_exists"
    assert await value(engine, "SELECT count(*) FROM campaigns WHERE status = 'draft'") == len(ARMS)
    with pytest.raises(Invalid):
        await begun(engine, name=" ")


# The link


def address(made, platform="link", person=""):
    query = f"?PROLIFIC_PID={person}&STUDY_ID=s&SESSION_ID=v-{person}&more=a%20b" if person else ""
    return f"/experiment/{platform}/{made.link_key}{query}"


async def test_the_link_leads_to_an_arms_campaign_with_all_that_the_platform_says(engine, client, few_verbs):
    made = await begun(engine)
    answer = await client.get(address(made, "prolific", "ann"))
    assert answer.status_code == 303
    there = answer.headers["location"]
    arms = {row.link_key for row in made.campaigns.values()}
    path, query = there.split("?")
    assert path.removeprefix("/prolific/") in arms
    assert query == address(made, "prolific", "ann").split("?")[1]
    assert "set-cookie" not in answer.headers
    assert (await client.get(there)).status_code == 200
