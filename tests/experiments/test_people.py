"""An experiment of the papers is repeated with people: each comes to one of its arms by one link, and the arms are
compared.
"""

import asyncio
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import repeat
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from pyarrow import parquet
from scipy.stats import chisquare

from app.annotation.platforms.visit_limit import VisitLimiter
from app.campaigns import empty_campaigns, experiment_arms, lifecycle
from app.cli.commands import easel as command
from app.errors import Conflict, Invalid
from app.experiments.arm_assignment import choose_visited_or_running_arm
from app.experiments.human_arms import HUMAN_ARMS, ExperimentRequest, create_experiment
from app.imports.demo import DEMO_ITEMS_FILE, read_demo_true_word_frequencies
from app.quality.decisions import exclude_annotator, find_annotator_id_or_refuse
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.revisions import switch_revision_if_it_misses_decisions
from app.server import serve
from app.settings import Settings
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)


@pytest.fixture
def few_verbs(tmp_path, monkeypatch):
    """Every fifteenth verb alone."""
    head, *rows = DEMO_ITEMS_FILE.read_text().splitlines()
    path = tmp_path / "verbs.csv"
    path.write_text("\n".join([head, *rows[::15]]) + "\n")
    monkeypatch.setattr("app.experiments.human_arms.DEMO_ITEMS_FILE", path)


async def create_running_experiment(engine, *, launch=True, **wanted):
    """An experiment whose link says who comes to which arm, the same in every run."""
    async with engine.begin() as connection:
        made = await create_experiment(
            connection, ExperimentRequest(**{"name": "Verbs"} | wanted), is_launched=launch, now=NOW
        )
    return replace(made, link_key=await with_known_key(engine))


async def with_known_key(engine):
    await execute_sql(engine, "UPDATE experiment_arms SET link_key = 'key'")
    return "key"


@pytest.fixture
def easel(database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)

    async def run(*arguments, code=0):
        found = await asyncio.to_thread(CliRunner().invoke, command, ["experiment", *map(str, arguments)])
        assert found.exit_code == code, found.output
        return found.output

    return run


# Setting it up


async def test_each_arm_is_a_campaign_on_the_same_items_that_asks_and_learns_in_its_way(engine, few_verbs):
    made = await create_running_experiment(engine, judgments_per_item=4, judgments_per_annotator=20)
    assert [row.slug for row in made.campaigns.values()] == ["verbs-da", "verbs-ra", "verbs-easl"]
    settings = "design, update_law, rule, items_per_hit, hits_per_annotator, judgments_per_item, status"
    assert await fetch_rows(engine, f"SELECT {settings} FROM campaigns ORDER BY id") == [
        ("rating", "easl", "scores", 1, 20, 4, "running"),
        ("ranking", "ra", "easl", 5, 4, 4, "running"),
        ("slider", "easl", "easl", 5, 4, 4, "running"),
    ]
    assert await fetch_rows(engine, "SELECT DISTINCT count(*) FROM items GROUP BY campaign_id") == [(10,)]


async def test_of_two_experiments_of_one_name_the_second_is_refused(engine, few_verbs):
    await create_running_experiment(engine, launch=False)
    with pytest.raises(Conflict) as refused:
        await create_running_experiment(engine, name="VERBS")
    assert refused.value.code == "experiment_exists"
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns WHERE status = 'draft'") == len(HUMAN_ARMS)
    with pytest.raises(Invalid):
        await create_running_experiment(engine, name=" ")


# Who comes to which arm


def arms(**statuses):
    return [
        SimpleNamespace(arm=arm, status=statuses.get(arm, "running"), known=arm in statuses.get("known", ()))
        for arm in HUMAN_ARMS
    ]


def numbers(open_arms, people):
    return Counter(
        choose_visited_or_running_arm(open_arms, "key", f"prolific {person}").arm for person in range(people)
    )


def test_arms_get_as_many_people_as_each_other():
    assert chisquare([*numbers(arms(), 3000).values()]).pvalue > 0.01


def test_who_would_come_to_an_arm_that_ended_goes_to_the_others_evenly_and_nobody_else_moves():
    before, after = arms(), arms(DA="finished")
    moved: Counter[str] = Counter()
    for person in map(str, range(3000)):
        was, now = (
            choose_visited_or_running_arm(before, "key", person).arm,
            choose_visited_or_running_arm(after, "key", person).arm,
        )
        if was == "DA":
            moved[now] += 1
        else:
            assert now == was
    assert moved.keys() == {"RA", "EASL"}
    assert chisquare([*moved.values()]).pvalue > 0.01


def test_in_another_experiment_people_come_to_other_arms():
    both = Counter(
        tuple(choose_visited_or_running_arm(arms(), key, str(person)).arm for key in ("one", "two"))
        for person in range(1800)
    )
    assert len(both) == 9
    assert chisquare([*both.values()]).pvalue > 0.01


def test_who_was_in_an_arm_stays_there_when_it_ends():
    assert numbers(arms(RA="finished", known={"RA"}), 30) == {"RA": 30}


def test_where_nothing_runs_people_come_to_what_is_not_over():
    assert numbers(arms(DA="finished", RA="paused", EASL="finished"), 30) == {"RA": 30}
    assert len(numbers(arms(**dict.fromkeys(HUMAN_ARMS, "finished")), 30)) == 3


# The link


def address(made, platform="link", person=""):
    query = f"?PROLIFIC_PID={person}&STUDY_ID=s&SESSION_ID=v-{person}&more=a%20b" if person else ""
    return f"/experiment/{platform}/{made.link_key}{query}"


async def test_the_link_leads_to_an_arms_campaign_with_all_that_the_platform_says(engine, client, few_verbs):
    made = await create_running_experiment(engine)
    answer = await client.get(address(made, "prolific", "ann"))
    path, query = answer.headers["location"].split("?")
    assert answer.status_code == 303
    assert path.removeprefix("/prolific/") in {row.link_key for row in made.campaigns.values()}
    assert query == address(made, "prolific", "ann").split("?")[1]
    assert "set-cookie" not in answer.headers
    assert (await client.get(answer.headers["location"])).status_code == 200
    again = await client.get(address(made, "prolific", "ann"))
    assert again.headers["location"] == answer.headers["location"]


async def test_who_has_no_id_comes_to_any_arm_and_stays_there_by_its_link(engine, client, few_verbs):
    made = await create_running_experiment(engine)
    there = Counter([(await client.get(address(made))).headers["location"] for _ in range(60)])
    assert there.keys() == {f"/link/{row.link_key}" for row in made.campaigns.values()}
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0
    mine = next(iter(there))
    started = await client.post(mine)
    assert started.headers["location"].startswith(f"{mine}?t=")
    assert not client.cookies


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/experiment/link/nothing", 404, "campaign_not_found"),
        ("/experiment/personal/KEY?person=x", 404, "campaign_not_found"),
        ("/experiment/prolific/KEY?PROLIFIC_PID=a", 422, "arrival_incomplete"),
        ("/experiment/prolific/KEY?PROLIFIC_PID=a&PROLIFIC_PID=b&STUDY_ID=s&SESSION_ID=v", 422, "arrival_doubled"),
    ],
)
async def test_a_link_that_leads_nowhere_says_why(engine, client, few_verbs, path, *, status, code):
    made = await create_running_experiment(engine)
    refused = await client.get(path.replace("KEY", made.link_key))
    assert (refused.status_code, code in refused.text) == (status, True)


async def test_only_for_a_platform_that_frames_the_page_the_link_may_be_framed(engine, client, few_verbs):
    made = await create_running_experiment(engine)
    come = "?assignmentId=a&hitId=h&workerId=w"
    framed, alone = [await client.get(address(made, platform) + come) for platform in ("mturk", "link")]
    assert (framed.status_code, alone.status_code) == (303, 303)
    assert "x-frame-options" not in framed.headers
    assert alone.headers["x-frame-options"] == "DENY"


async def test_as_many_may_come_by_it_as_by_the_campaigns_own(app, engine, client, few_verbs):
    made = await create_running_experiment(engine)
    app.state.visit_limiter = VisitLimiter("key", Settings(visits_per_address=1))
    came: Counter[int] = Counter()
    for person in map(str, range(30)):
        there = (await client.get(address(made, "prolific", person))).headers["location"]
        came[(await client.get(there)).status_code] += 1
    assert came == {200: 3, 429: 27}  # one in each arm


# Pages


async def test_an_arms_pages_say_so_and_share_the_link_of_the_experiment(engine, researcher, few_verbs):
    made = await create_running_experiment(engine)
    page = (await researcher.get("/admin/campaigns/verbs-ra")).text
    assert "Arm RA of the experiment “verbs”" in page
    for other in ("verbs-da", "verbs-easl"):
        assert f'<a href="/admin/campaigns/{other}">' in page
    share = (await researcher.get("/admin/campaigns/verbs-ra/share")).text
    for path in (f"/experiment/link/{made.link_key}", f"/experiment/prolific/{made.link_key}?PROLIFIC_PID="):
        assert path in share
    for shown in (page, share):
        assert made.campaigns["RA"].link_key not in shown
    assert "by-personal" not in share


@pytest.mark.usefixtures("few_verbs")
async def test_programs_commands_and_the_start_give_the_link_of_the_experiment_for_an_arm(
    database_url, monkeypatch, app, engine, client
):
    made = await create_running_experiment(engine)
    other = await create_running_campaign(engine, name="Nouns")
    path = f"/experiment/link/{made.link_key}"
    _, token = await log_in_with_role(app, client, "owner")
    reply = await client.get("/api/v1/campaigns", headers={"authorization": f"Bearer {token}"})
    listed = reply.json()["campaigns"]
    told = {one["slug"]: (one["experiment"], one["arm"]) for one in listed}
    assert told == {"nouns": (None, None), **{f"verbs-{arm.lower()}": ("verbs", arm) for arm in HUMAN_ARMS}}
    ways = {one["links"]["link"].partition("://")[2].partition("/")[2] for one in listed}
    assert ways == {path[1:], f"link/{other.link_key}"}

    monkeypatch.setenv("DATABASE_URL", database_url)
    shown = await asyncio.to_thread(CliRunner().invoke, command, ["campaign", "show", "verbs-ra"])
    assert path in shown.output
    assert "experiment: verbs\narm: RA\n" in shown.output
    words, _ = await serve.prepare_database_returning_welcome_and_key(
        database_url, "http://here", with_demo=False, shows_login_link=False
    )
    assert [line for line in words.splitlines() if "Annotators" in line] == [
        f"  Annotators   http://here/link/{other.link_key}  (Nouns)",
        f"  Annotators   http://here{path}  (experiment verbs, to one of its arms at random)",
    ]
    for arm in made.campaigns.values():
        assert arm.link_key not in shown.output + words + str(ways)


async def test_a_draft_says_that_it_is_an_arm_and_other_campaigns_say_nothing(engine, researcher, few_verbs):
    await create_running_experiment(engine, launch=False)
    other = await create_running_campaign(engine, name="Nouns")
    assert "Arm DA of the experiment" in (await researcher.get("/admin/campaigns/verbs-da")).text
    for part in ("", "/share"):
        assert "experiment" not in (await researcher.get(f"/admin/campaigns/{other.slug}{part}")).text


async def test_who_sees_one_arm_alone_hears_of_no_other(app, engine, client, few_verbs):
    made = await create_running_experiment(engine)
    await log_in_with_role(app, client, "guest", "viewer", made.campaigns["RA"])
    page = (await client.get("/admin/campaigns/verbs-ra")).text
    assert "Arm RA of the experiment “verbs”" in page
    assert "verbs-da" not in page


# From the first to the last


async def answers_all(client, engine, made, person, rng):
    """Somebody comes by the link and answers as long as there is something; the arm's path, and how many HITs."""
    there = (await client.get(address(made, "prolific", person))).headers["location"]
    (campaign,) = [row for row in made.campaigns.values() if row.link_key in there]
    design, truth, hits = campaign.design, np.array(read_demo_true_word_frequencies()[::15]), 0
    page = await client.get(there)
    if welcomed := re.search(r'name="token" value="([^"]+)"', page.text):
        page = await client.post(there, data={"token": welcomed[1], "step": "welcome"}, follow_redirects=True)
    while found := re.search(r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', page.text, re.DOTALL):
        token, hit = found.groups()
        items = await fetch_value(engine, "SELECT items FROM hits WHERE id = :hit", hit=int(hit))
        seen = np.clip(truth[items] + 0.05 * rng.standard_normal(len(items)), 0, 1)
        given = dict(zip(items, design.simulate_answer_values(seen.tolist()), strict=True))
        page = await client.post(there, data={"token": token, "hit": hit} | design.form_fields(given))
        assert page.status_code == 200
        hits += 1
    return campaign.slug, hits


async def test_people_repeat_the_paper(engine, client, easel, few_verbs, tmp_path):
    said = await easel(
        *("lexical-frequency", "--people", "--name", "Verbs", "--launch"),
        *("--judgments-per-item", 2, "--judgments-per-annotator", 10),
    )
    assert re.search(r"/experiment/link/\S{12} ", said)
    rows = await campaigns_of(engine)
    made = SimpleNamespace(link_key=await with_known_key(engine), campaigns={row.slug: row for row in rows})
    rng = np.random.default_rng(1)
    did = [await answers_all(client, engine, made, person, rng) for person in map(str, range(7))]
    assert Counter(slug for slug, hits in did if hits) == {"verbs-da": 2, "verbs-ra": 2, "verbs-easl": 2}
    assert {row.status for row in await campaigns_of(engine)} == {"finished"}
    path = (await easel("compare", "verbs", "--out", tmp_path)).strip()
    assert path == str(tmp_path / "verbs.md")
    page = (tmp_path / "verbs.md").read_text()
    for words in (
        "| EASL | verbs-easl | finished |",
        "| 2 | 4 | 2.0 |",
        "**Few people**: 2 in DA, 2 in RA, 2 in EASL.",
        "Ten verbs",
    ):
        assert words in page
    assert "simulated" not in page
    assert "Too few answers" not in page
    for name in ("spearman", "pearson", "histograms"):
        assert f"(verbs-{name}.svg)" in page
        ET.parse(tmp_path / f"verbs-{name}.svg")
    found = parquet.read_table(tmp_path / "verbs.parquet").to_pylist()
    assert [(row["arm"], row["judgments"]) for row in found] == [(arm, k) for arm in HUMAN_ARMS for k in (1, 2)]
    assert all(row["spearman_low"] <= row["spearman"] <= row["spearman_high"] for row in found if row["judgments"] == 2)
    assert min(row["spearman"] for row in found if row["judgments"] == 2) > 0.8
    scores = parquet.read_table(tmp_path / "verbs-scores.parquet").to_pylist()
    stored = "SELECT score FROM current_posteriors p JOIN campaigns c ON c.id = p.campaign_id ORDER BY c.id, number"
    assert [row["score"] for row in scores] == [score for (score,) in await fetch_rows(engine, stored)]


async def campaigns_of(engine):
    async with engine.connect() as connection:
        return await experiment_arms.load_experiment_arms_or_refuse(connection, "verbs")


async def simulated_answers(engine, slug):
    async with engine.connect() as connection:
        row = await load_campaign_by_slug_or_refuse(connection, slug)
    await answer_hits_by_simulated_annotators_and_count(
        engine, row, hits=30, annotators=3, population=population_with_random_bias_only(0.05), truth_column="oracle",
        rng=np.random.default_rng(1), clock=partial(next, repeat(NOW)),
    )  # fmt: skip


async def test_simulated_annotators_answer_an_arm_too_and_the_report_says_so(engine, easel, few_verbs, tmp_path):
    made = await create_running_experiment(engine, judgments_per_item=1)
    for row in made.campaigns.values():
        await simulated_answers(engine, row.slug)
    await easel("compare", "verbs", "--out", tmp_path)
    page = (tmp_path / "verbs.md").read_text()
    assert "**Some annotators are simulated**: " in page
    assert "| 1 | " in page
    assert "svg" not in page.replace("histograms.svg", "")  # one look makes no curve


async def test_too_few_answers_are_said_and_answers_left_out_do_not_count(engine, easel, few_verbs, tmp_path):
    made = await create_running_experiment(engine)
    for arm in ("EASL", "DA"):  # by the arms' own links
        me = await create_annotator(engine, made.campaigns[arm])
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    await easel("compare", "verbs", "--out", tmp_path)
    page = (tmp_path / "verbs.md").read_text()
    assert "| 1 | 1 | 0.5 |" in page
    assert "**1 person answered in more than one arm**" in page
    assert "**Too few answers**: DA, RA, EASL have fewer" in page
    async with engine.begin() as connection:
        who = await find_annotator_id_or_refuse(connection, made.campaigns["EASL"], "A1")
        await exclude_annotator(connection, made.campaigns["EASL"], who, reason="bot", now=NOW)
    await switch_revision_if_it_misses_decisions(engine, made.campaigns["EASL"].id, now=NOW)
    await easel("compare", "verbs", "--out", tmp_path)
    assert "| 0 | 0 | 0.0 |" in (tmp_path / "verbs.md").read_text().split("EASL | ")[1].split("\n")[0]


async def test_arms_on_other_items_are_not_compared_and_two_arms_are(engine, easel, few_verbs, tmp_path):
    made = await create_running_experiment(engine, launch=False)
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, "verbs-easl")
    await execute_sql(
        engine, "UPDATE items SET shown = 'go' WHERE number = 9 AND campaign_id = :ra", ra=made.campaigns["RA"].id
    )
    for arm in ("verbs-da", "verbs-ra"):
        async with engine.begin() as connection:
            await lifecycle.change_campaign_status_or_refuse(connection, arm, "launch", now=NOW)
    assert "items_differ" in await easel("compare", "verbs", "--out", tmp_path, code=1)
    await execute_sql(engine, "UPDATE items SET shown = 'go' WHERE number = 9")
    for arm in ("DA", "RA"):
        await simulated_answers(engine, made.campaigns[arm].slug)
    await easel("compare", "verbs", "--out", tmp_path)
    assert "What EASL gains" not in (tmp_path / "verbs.md").read_text()


async def test_what_cannot_be_compared_is_refused(engine, easel, few_verbs, tmp_path):
    assert "experiment_not_found" in await easel("compare", "verbs", "--out", tmp_path, code=1)
    await create_running_experiment(engine, launch=False)
    assert "not_launched" in await easel("compare", "verbs", "--out", tmp_path, code=1)
    assert "Give either --out" in await easel("lexical-frequency", "--people", "--out", tmp_path, code=2)
    assert "Give either --out" in await easel("lexical-frequency", code=2)
    assert "range" in await easel("lexical-frequency", "--people", "--judgments-per-annotator", 10**7, code=2)
