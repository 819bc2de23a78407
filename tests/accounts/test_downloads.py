"""Downloads of data about people are in the audit log: once for each, by page, API and command line."""

import asyncio

import pytest
from click.testing import CliRunner

from app.accounts import tokens, users
from app.annotation.onboarding import personal_links
from app.cli.commands import easel
from app.cli.run_command import machine_user_name
from app.database.session import create_engine
from app.exports.registry import export_by_name, export_names
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows

ABOUT_ANNOTATORS = [name for name, export in export_by_name().items() if export.is_about_annotators]
DOWNLOADS = "SELECT who, way, campaign, about FROM audit_log WHERE action = 'people.downloaded' ORDER BY id"


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    found = await create_running_campaign(engine, name="Verbs")
    async with engine.begin() as connection:
        await personal_links.create_missing_links_and_count_them(connection, found, ["Ada", "Bea"], now=NOW)
    return found


@pytest.fixture
async def headers(engine, researcher):
    async with engine.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        return {
            "authorization": f"Bearer {await tokens.issue_token_or_refuse(connection, admin.id, 'program', now=NOW)}"
        }


async def test_each_download_of_a_file_about_people_is_a_line(engine, researcher, headers, campaign):
    pages, api = f"/admin/campaigns/{campaign.slug}", f"/api/v1/campaigns/{campaign.slug}"
    expected = []
    for what in (name for name in ABOUT_ANNOTATORS if name != "adjudications"):  # the items have scores, no labels
        assert (await researcher.get(f"{pages}/export/{what}.csv")).status_code == 200
        reply = await researcher.get(f"{api}/export/{what}", params={"format": "jsonl"}, headers=headers)
        assert reply.status_code == 200
        expected += [("admin", "page", campaign.slug, f"{what}.csv"), ("admin", "api", campaign.slug, f"{what}.jsonl")]
    await researcher.get(f"{pages}/people.csv")
    await researcher.get(f"{api}/people", params={"limit": 1}, headers=headers)
    await researcher.get(f"{api}/people", params={"limit": 1, "offset": 1}, headers=headers)  # no first page is needed
    expected += [("admin", "page", campaign.slug, "people.csv"), *[("admin", "api", campaign.slug, "people.json")] * 2]
    assert await fetch_rows(engine, DOWNLOADS) == expected
    log = (await researcher.get(f"{pages}/log")).text
    assert "downloaded data about people: responses.csv" in " ".join(log.split())


async def test_what_says_nothing_of_people_is_no_line_nor_is_what_is_refused(engine, researcher, headers, campaign):
    pages, api = f"/admin/campaigns/{campaign.slug}", f"/api/v1/campaigns/{campaign.slug}"
    for file in ("items.csv", "settings.json", "easl.csv", "secrets.csv", "responses.pdf"):
        await researcher.get(f"{pages}/export/{file}")
    await researcher.get(f"{api}/export/responses", headers={"authorization": "Bearer none"})
    await researcher.get("/api/v1/campaigns/none/export/responses", headers=headers)
    assert await fetch_rows(engine, DOWNLOADS) == []


def test_each_export_is_about_people_or_about_items():
    """A new one is put on one of the two lists."""
    of_items = {"items", "segments", "easl", "settings", "scores", "halo", "item_labels", "labels"}
    of_items |= {"pairs", "choices", "win_loss", "label_sets", "item_label_sets"}
    assert {*ABOUT_ANNOTATORS} == {
        "responses",
        "unanswered",
        "annotators",
        "returning",
        "decisions",
        "adjudications",
        "assignments",
        "visits",
        "remarks",
    }
    assert {*export_names()} == {*ABOUT_ANNOTATORS} | of_items


def test_the_command_line_is_logged_under_the_name_on_the_machine(database_url, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", database_url)

    def run(*arguments):
        result = CliRunner().invoke(easel, list(arguments))
        assert result.exit_code == 0, result.output
        return result.stdout

    slug = run("campaign", "create", "--name", "Verbs", "--question", "How often?").strip()
    run("export", slug, "visits", "-o", str(tmp_path / "visits.csv"))
    run("export", slug, "settings")
    assert asyncio.run(lines(database_url)) == [(machine_user_name(), "command", slug, "visits.csv")]


async def lines(url):
    engine = create_engine(url, pool_size=1)
    found = await fetch_rows(engine, DOWNLOADS)
    await engine.dispose()
    return found
