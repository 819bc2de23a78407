"""`easel people`: who may do what, from the command line."""

import asyncio
import json
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli.commands import easel as command


@pytest.fixture
def easel(database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    return lambda *arguments: CliRunner().invoke(command, [str(one) for one in arguments])


@pytest.fixture
def campaign(easel):
    return easel("campaign", "create", "--name", "Verbs", "--question", "How often?").output.strip()


@pytest.fixture
def accepts(app, client, easel):
    """Accept an invitation and choose a login name."""

    async def accept(link: str, name: str) -> Any:
        form = {
            "token": link.partition("token=")[2].strip(),
            "way": "new",
            "name": name,
            "password": "long enough to be one",
        }
        return (await client.post("/invitation", data=form)).status_code

    return accept


async def run(easel, *arguments):
    return await asyncio.to_thread(easel, *arguments)


async def listed(easel, *arguments):
    found = json.loads((await run(easel, "people", "list", *arguments, "--json")).output)
    return {one["name"]: one["role"] for one in found}


async def test_an_invitation_is_printed_works_once_and_the_role_is_listed(easel, accepts):
    made = await run(easel, "people", "invite", "--role", "viewer", "--for", "Ada", "--url", "https://scale.example")
    assert made.output.startswith("https://scale.example/invitation?token=")
    assert await accepts(made.output, "ada") == 303
    assert await accepts(made.output, "bob") == 410
    assert await listed(easel) == {"ada": "viewer"}
    shown = (await run(easel, "people", "list")).output
    assert "ada" in shown
    assert "viewer" in shown


async def test_roles_in_a_campaign_are_given_changed_and_ended(easel, campaign, accepts):
    for name, role in (("ada", "owner"), ("bea", "viewer")):
        made = await run(easel, "people", "invite", campaign, "--role", role)
        assert await accepts(made.output, name) == 303
    assert await listed(easel, campaign) == {"ada": "owner", "bea": "viewer"}
    assert (
        await run(easel, "people", "share", campaign, "bea", "--role", "manager")
    ).output == "bea is manager of verbs.\n"
    assert await listed(easel, campaign) == {"ada": "owner", "bea": "manager"}
    assert (await run(easel, "people", "unshare", campaign, "bea")).exit_code == 0
    assert await listed(easel, campaign) == {"ada": "owner"}
    await run(easel, "people", "share", campaign, "bea")
    assert await listed(easel, campaign) == {"ada": "owner", "bea": "viewer"}


def test_what_is_not_there_is_said_with_a_code(easel, campaign, subtests):
    for arguments, code in (
        (("list", "nothing"), "campaign_not_found"),
        (("invite", "nothing"), "campaign_not_found"),
        (("role", "nobody", "owner"), "user_not_found"),
        (("share", "verbs", "nobody"), "user_not_found"),
        (("unshare", "verbs", "nobody"), "user_not_found"),
    ):
        with subtests.test(arguments=arguments, code=code):
            refused = easel("people", *arguments)
            assert refused.exit_code == 1
            assert f"({code})" in refused.stderr


async def test_a_role_for_the_whole_server_is_set(easel, accepts):
    made = await run(easel, "people", "invite")
    assert await accepts(made.output, "ada") == 303
    assert await listed(easel) == {"ada": "member"}
    assert (await run(easel, "people", "role", "ada", "owner")).output == "ada is owner of this server.\n"
    assert await listed(easel) == {"ada": "owner"}


async def test_a_token_for_a_program_is_printed_and_opens_the_api(easel, accepts, client):
    assert await accepts((await run(easel, "people", "invite", "--role", "owner")).output, "ada") == 303
    made = await run(easel, "people", "token", "ada", "nightly export", "--scope", "read")
    assert made.exit_code == 0, made.stderr
    program = {"Authorization": f"Bearer {made.output.strip()}"}
    assert (await client.get("/api/v1/campaigns", headers=program)).status_code == 200
    refused = await client.post("/api/v1/campaigns", headers=program, json={"question": "How often?"})
    assert refused.json()["error"]["code"] == "scope_forbids"


async def test_a_token_can_be_for_one_campaign(easel, accepts, campaign, client):
    assert await accepts((await run(easel, "people", "invite", "--role", "owner")).output, "ada") == 303
    made = await run(easel, "people", "token", "ada", "judge", "--scope", "manage", "--campaign", campaign)
    program = {"Authorization": f"Bearer {made.output.strip()}"}
    other = await client.post("/api/v1/campaigns", headers=program, json={"question": "How often?"})
    assert other.json()["error"]["code"] == "token_of_one_campaign"
    missing = await run(easel, "people", "token", "ada", "judge", "--scope", "read", "--campaign", "nowhere")
    assert "campaign_not_found" in missing.stderr


async def test_a_researcher_who_leaves_is_removed_but_not_the_last_owner(easel, accepts):
    for name, role in (("ada", "owner"), ("bea", "member")):
        assert await accepts((await run(easel, "people", "invite", "--role", role)).output, name) == 303
    assert (await run(easel, "people", "remove", "bea")).output == "bea is no longer a researcher of this server.\n"
    assert await listed(easel) == {"ada": "owner"}
    assert "user_not_found" in (await run(easel, "people", "remove", "bea")).stderr
    assert "last_owner" in (await run(easel, "people", "remove", "ada")).stderr
