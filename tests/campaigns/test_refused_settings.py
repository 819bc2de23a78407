"""Settings that cannot be are refused alike at every door: the form, the API, the command and the campaign file."""

import asyncio
from html import unescape
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from app.campaigns.form_sections import step_of_field_or_none
from app.cli.commands import easel
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)

VALID = {"name": "Verbs", "question": "How often?"}
EXPECTING_NOTHING = "set,item,expected\n1,walk,\n1,wait,\n1,weep,\n1,wonder,\n1,wake,\n"
# Settings, the field that each door names, and words that each door says (or: the words of people, and of programs).
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "\u200b"}, "name", "ust contain visible text"),
    ({"judgments_per_item": 0}, "judgments_per_item", "greater than or equal to 1"),
    ({"items_per_hit": "five"}, "items_per_hit", "Enter a whole number.|valid integer"),
    ({"low_label": "same", "high_label": "same"}, "high_label", "two ends"),
    ({"gamma": 0}, "gamma", "greater than or equal to 0.0001"),
    ({"training": "no table"}, "training", "column"),
    ({"qualification": EXPECTING_NOTHING}, "qualification", "expected"),
    ({"questions": ["What is your age?"]}, "questions", "What is your age?"),
    ({"design": "pairwise", "goal": "best"}, "goal", "goal"),
]


def form_value(value: Any) -> str:
    return "\n".join(value) if isinstance(value, list) else str(value)


@pytest.fixture
def doors(researcher, api_client, database_url, monkeypatch, tmp_path):  # noqa: F811
    """Create a campaign by each door and return what it says: its refusal, as plain text with the field in it."""
    monkeypatch.setenv("DATABASE_URL", database_url)

    async def by_form(settings: dict[str, Any]) -> str:
        fields = {name: form_value(value) for name, value in settings.items()}
        if goal := fields.pop("goal", None):
            fields |= {"need": "custom", "need.custom.goal": goal}
        made = await researcher.post("/admin/campaigns/new", data=VALID)
        address = made.headers["location"].partition("/settings/")[0]
        replies = [
            await researcher.post(
                f"{address}/settings/{step}",
                data={name: value for name, value in fields.items() if step_of_field_or_none(name) == step},
            )
            for step in ("question", "visit", "how-much", "advanced")
        ]
        await researcher.post(f"{address}/delete")
        (refused,) = [reply for reply in replies if reply.status_code == 422]
        return unescape(refused.text).replace("need.custom.", "")

    async def by_api(settings: dict[str, Any]) -> str:
        reply = await api_client.post(f"{API}/campaigns", json=settings)
        assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")
        return "\n".join(f"{one['field']}: {one['message']}" for one in reply.json()["error"]["details"]["fields"])

    async def by_command(settings: dict[str, Any]) -> str:
        options = [part for name, value in settings.items() for part in option(name, form_value(value))]
        result = await asyncio.to_thread(CliRunner().invoke, easel, ["campaign", "create", *options])
        assert (result.exit_code, result.stdout) == (1, "")
        return result.stderr

    async def by_file(settings: dict[str, Any]) -> str:
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(settings, allow_unicode=True))
        result = await asyncio.to_thread(CliRunner().invoke, easel, ["campaign", "create", str(tmp_path / "c.yaml")])
        assert (result.exit_code, result.stdout) == (1, "")
        return result.stderr

    def option(name: str, value: str) -> list[str]:
        return [f"--{name.replace('_', '-')}", value]

    return {
        "form": (by_form, 'id="{}-error"'),
        "API": (by_api, "{}: "),
        "command": (by_command, "--{}: "),
        "file": (by_file, ", {}: "),
    }


async def test_every_door_names_the_field_and_says_the_same_words(doors, researcher, subtests):
    for settings, field, words in REFUSED:
        for door, (create, place) in doors.items():
            with subtests.test(door=door, settings=settings):
                refusal = await create(VALID | settings)
                named = field.replace("_", "-") if door == "command" else field
                _, found, message = refusal.partition(place.format(named))
                assert found
                assert any(variant in message[:300] for variant in words.split("|"))
                assert "Value error" not in refusal
    assert "/admin/campaigns/verbs" not in (await researcher.get("/admin")).text
