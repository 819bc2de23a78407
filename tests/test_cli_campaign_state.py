"""`easel campaign show`, `goal` and `alerts` say how a campaign is doing and what comes next."""

# ruff: noqa: F811 (fixtures are imported, and asked for by name)

import asyncio
import json
import os
import re

import pytest

from app.database.session import create_engine
from tests.annotation.hits.campaigns import execute_sql
from tests.test_cli import easel, files, running  # noqa: F401  (fixtures)


def next_step(easel, slug):
    (line,) = re.findall(r"^next step: (.*)$", easel("campaign", "show", slug).output, re.MULTILINE)
    return line


def test_show_fits_a_terminal(easel, running, monkeypatch):
    monkeypatch.setenv("EASEL_PUBLIC_URL", "https://easel.example")
    easel("campaign", "edit", running, "--goal", "intervals", "--goal-width", 50)
    lines = easel("campaign", "show", running).output.splitlines()
    assert len(lines) < 24
    assert [line.partition(":")[0] for line in lines[:6]] == [
        "name", "status", "launched at", "items", "judgments", "goal",
    ]  # fmt: skip
    assert "judgments: 0 of 60" in lines
    assert "goal: 95 % of items have intervals of ±50 points or less" in lines
    assert "next step: send a link to annotators" in lines
    assert any(line.startswith("link: https://easel.example/link/") for line in lines)


def test_show_names_the_next_step_of_every_state(easel, files):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    assert next_step(easel, "verbs") == "`easel campaign import verbs FILE`"
    easel("campaign", "import", "verbs", files / "items.csv")
    assert next_step(easel, "verbs") == "`easel campaign launch verbs`"
    easel("campaign", "launch", "verbs")
    assert next_step(easel, "verbs") == "send a link to annotators"
    easel("simulate", "verbs", "--hits", 1, "--pace", 0)
    assert next_step(easel, "verbs") == "wait for judgments; see `easel analyse verbs`"
    easel("campaign", "edit", "verbs", "--goal", "intervals")
    assert next_step(easel, "verbs") == "wait for judgments; see `easel campaign goal verbs`"
    easel("campaign", "pause", "verbs")
    assert next_step(easel, "verbs") == "`easel campaign resume verbs`, or `easel campaign finish verbs`"
    easel("campaign", "finish", "verbs")
    assert next_step(easel, "verbs") == "`easel analyse verbs`, or `easel export verbs everything -o verbs.zip`"
    easel("campaign", "archive", "verbs")
    assert next_step(easel, "verbs") == "bring it back with `easel campaign restore verbs`"


def test_the_goal_is_shown_with_its_progress(easel, running):
    easel("campaign", "edit", running, "--goal", "intervals", "--goal-width", 50)
    assert easel("campaign", "goal", running).output == (
        "goal: 95 % of items have intervals of ±50 points or less\nnow: 0.0\nwanted: 0.95\nreached: no\n"
        "measured by: means\n"
    )
    easel("simulate", running, "--hits", 8, "--pace", 0)
    report = json.loads(easel("campaign", "goal", running, "--json").output)
    assert report["reached"]
    assert report["now"] >= report["wanted"] == 0.95
    assert report["settled"] is None


@pytest.mark.parametrize("code", ["no_goal", "not_launched"])
def test_without_a_goal_or_a_launch_there_is_no_progress(easel, running, code):
    easel("campaign", "create", "--name", "Draft", "--question", "Q?")
    assert f"({code})" in easel("campaign", "goal", running if code == "no_goal" else "draft").stderr


def test_alerts_are_listed_until_they_are_marked_as_seen(easel, running):
    assert easel("campaign", "alerts", running).output == "No alerts.\n"
    easel("simulate", running, "--hits", 1000, "--pace", 0)
    (alert,) = json.loads(easel("campaign", "alerts", running, "--json").output)
    assert alert["said"] == "The campaign is finished."
    assert easel("campaign", "alerts", running).output.startswith(f"{alert['id']}  ")
    assert f"unseen alerts: 1; see `easel campaign alerts {running}`" in easel("campaign", "show", running).output
    marked = easel("campaign", "alerts", running, "--mark", alert["id"]).output
    assert marked == f"Marked alert {alert['id']} of {running} as seen.\n"
    assert easel("campaign", "alerts", running).output == "No alerts.\n"
    assert "The campaign is finished." in easel("campaign", "alerts", running, "--seen").output
    assert "unseen alerts" not in easel("campaign", "show", running).output
    assert "(alert_not_found)" in easel("campaign", "alerts", running, "--mark", alert["id"] + 1).stderr


RAISE_ALERTS = """
    INSERT INTO alerts (campaign_id, kind, occasion, about)
    SELECT c.id, :kind, CAST(n AS text), 'Ann' FROM campaigns c, generate_series(1, :count) AS n WHERE c.slug = :slug
"""


def raise_alerts(slug, kind, count):
    async def insert_alerts():
        engine = create_engine(os.environ["DATABASE_URL"], pool_size=1)
        await execute_sql(engine, RAISE_ALERTS, slug=slug, kind=kind, count=count)
        await engine.dispose()

    asyncio.run(insert_alerts())


def test_all_unseen_alerts_are_counted_and_alerts_that_count_the_same_are_one(easel, running):
    raise_alerts(running, "held", 60)
    raise_alerts(running, "turned_away", 70)
    assert f"unseen alerts: 61; see `easel campaign alerts {running}`" in easel("campaign", "show", running).output
    listed = json.loads(easel("campaign", "alerts", running, "--json").output)
    assert [alert["kind"] for alert in listed] == ["turned_away"] + ["held"] * 49


def test_an_alert_is_marked_or_seen_ones_are_listed_but_not_both(easel, running):
    refused = easel("campaign", "alerts", running, "--seen", "--mark", 1)
    assert refused.exit_code == 2
    assert "--mark comes without --seen." in refused.stderr
