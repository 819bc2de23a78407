"""The page Security: its promises about responses, and the tests that it names."""

import re
from pathlib import Path

import pytest

from app.accounts import passwords
from app.campaigns import summaries
from tests.annotation.hits.campaigns import create_running_campaign

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/operators/security.md").read_text()
# Requirements of levels 1 and 2 in each section of version 5.0.0.
SECTIONS = {
    "1.1": 2, "1.2": 9, "1.3": 11, "1.4": 3, "1.5": 2, "2.1": 3, "2.2": 3, "2.3": 4, "2.4": 1, "3.2": 2, "3.3": 4,
    "3.4": 6, "3.5": 5, "3.7": 2, "4.1": 3, "4.2": 1, "4.3": 2, "4.4": 4, "5.1": 1, "5.2": 3, "5.3": 2, "5.4": 3,
    "6.1": 3, "6.2": 12, "6.3": 4, "6.4": 4, "6.5": 5, "6.6": 3, "6.8": 4, "7.1": 3, "7.2": 4, "7.3": 2, "7.4": 5,
    "7.5": 2, "7.6": 2, "8.1": 2, "8.2": 3, "8.3": 1, "8.4": 1, "9.1": 3, "9.2": 4, "10.1": 2, "10.2": 2, "10.3": 4,
    "10.4": 11, "10.5": 5, "10.6": 2, "10.7": 3, "11.1": 2, "11.2": 3, "11.3": 3, "11.4": 4, "11.5": 1, "11.6": 1,
    "12.1": 3, "12.2": 2, "12.3": 4, "13.1": 1, "13.2": 5, "13.3": 2, "13.4": 5, "14.1": 2, "14.2": 4, "14.3": 3,
    "15.1": 3, "15.2": 3, "15.3": 7, "16.1": 1, "16.2": 5, "16.3": 4, "16.4": 3, "16.5": 3, "17.1": 1, "17.2": 4,
    "17.3": 2,
}  # fmt: skip
SENTENCES = ("Not met, because ", "Not applicable: ", "Documentation: ")


def table_rows() -> list[list[str]]:
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| \d", line)]
    assert all(len(cells) == 3 for cells in lines)
    return lines


def test_each_requirement_is_in_the_table_once():
    named = [number for ids, _, _ in table_rows() for number in ids.split(", ")]
    wanted = [f"{section}.{number}" for section, count in SECTIONS.items() for number in range(1, count + 1)]
    assert sorted(named) == sorted(wanted)


def test_each_row_names_tests_that_exist_or_says_why_there_are_none():
    missing = []
    for ids, _, how in table_rows():
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", how)
        assert tests or how.startswith(SENTENCES), ids
        for file, name in tests:
            if not (ROOT / file).exists() or not re.search(rf"def {name}\(", (ROOT / file).read_text()):
                missing.append(f"{file}::{name}")
    assert missing == []


@pytest.fixture
async def addresses(engine):
    """Return addresses of each kind: of annotators, researchers, programs, files, and an unknown one."""
    campaign = await create_running_campaign(engine)
    return (
        f"/link/{campaign.link_key}", "/login", "/admin", f"/api/v1/campaigns/{campaign.slug}",
        "/static/easel.css", "/nowhere",
    )  # fmt: skip


async def test_every_response_has_the_headers_that_restrict_browsers(researcher, addresses, subtests):
    for address in addresses:
        with subtests.test(address=address):
            headers = (await researcher.get(address)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] in ("no-referrer", "same-origin")  # a login tells it its own server
            policy = headers["content-security-policy"]
            for part in ("default-src 'self'", "base-uri 'none'", "object-src 'none'", "frame-ancestors 'none'"):
                assert part in policy
            assert "unsafe" not in policy


async def test_no_other_origin_may_read_replies(researcher, addresses):
    for address in addresses:
        reply = await researcher.get(address, headers={"Origin": "https://evil.example"})
        assert not [name for name in reply.headers if name.startswith("access-control-")]


async def test_folders_are_not_listed_and_trace_is_refused(researcher, addresses):
    for folder in ("/static/", "/static", "/static/admin/"):
        assert (await researcher.get(folder, follow_redirects=True)).status_code in (404, 405)
    for address in addresses:
        assert (await researcher.request("TRACE", address)).status_code in (403, 404, 405)


async def test_an_error_tells_the_visitor_nothing_of_the_inside(researcher, monkeypatch):
    async def fail(*_, **__):
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(summaries, "load_campaigns_with_progress", fail)
    for accepted in ("text/html", "application/json"):
        reply = await researcher.get("/admin", headers={"accept": accepted})
        assert reply.status_code == 500
        assert not re.search("secret of the house|RuntimeError|Traceback|site-packages", reply.text)


async def test_pages_about_people_are_kept_by_no_cache(researcher, engine):
    campaign = await create_running_campaign(engine)
    for page in ("", "/annotators", "/members"):
        reply = await researcher.get(f"/admin/campaigns/{campaign.slug}{page}")
        assert reply.headers["cache-control"] == "no-store"


async def test_pages_of_researchers_have_a_logout(researcher, engine):
    campaign = await create_running_campaign(engine)
    for page in ("/admin", f"/admin/campaigns/{campaign.slug}", "/admin/account"):
        assert 'action="/logout"' in (await researcher.get(page)).text


async def test_fields_of_passwords_are_masked_and_filled_in_by_managers(client):
    (field,) = re.findall(r"<input[^>]*name=\"password\"[^>]*>", (await client.get("/login")).text)
    assert 'type="password"' in field
    assert 'autocomplete="current-password"' in field
    assert "onpaste" not in field


async def test_a_long_password_of_any_characters_is_taken_as_it_is():
    password = "Ä 🔑 ' \" <b> " * 10
    stored = await passwords.hash_allowed_password_or_refuse(password)
    assert await passwords.is_password_correct(stored, password)
    assert not await passwords.is_password_correct(stored, password.lower())
    assert not await passwords.is_password_correct(stored, password[:-1])
