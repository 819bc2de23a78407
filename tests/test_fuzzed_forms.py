"""No form of a page, however it is filled in, is an error of the server."""

import re
from pathlib import Path
from random import Random

import pytest
from fastapi.routing import iter_route_contexts

from app.campaigns.form_values import new_campaign_form_values
from app.designs.registry import DESIGNS
from tests.annotation.hits.campaigns import create_running_campaign
from tests.conftest import http_client

SEED, FORMS_PER_ROUTE, FORMS_PER_DESIGN, NEW_CAMPAIGNS = 37, 12, 60, 150
TEMPLATES = Path(__file__).parents[1] / "templates"
FIELD_NAMES = sorted(
    {name for page in TEMPLATES.rglob("*.html") for name in re.findall(r'\bname="([\w-]+)"', page.read_text())}
)
ENDS_THE_LOGIN = ("/logout", "/admin/account/password", "/admin/account/delete")
STRANGE = (
    "", " ", "0", "-1", "1e999", "nan", "inf", "١", "1_0", "9" * 30, "9" * 5000, "2147483648", "9223372036854775808",
    "true", "null", "[]", "{}", '{"a": [1e400]}', "\0", "a\0b", "\r\n", "\u202e", "\U0001f600" * 300, "<b>", "%00",
    "../..", "a" * 30_000, "2026-02-30", "99999-01-01T00:00", "00", "01", "tie", "yes", "on", "=1+1", "\x7f", "\ufeff",
    "e\u0301" * 90,
)  # fmt: skip


def draw_form(rng: Random, names: list[str]) -> dict[str, str]:
    chosen = rng.sample(names, min(len(names), rng.randrange(1, 12)))
    return {name: rng.choice(STRANGE) for name in chosen}


def fill_path(path: str, slug: str, link_key: str, rng: Random) -> str:
    """Return the address of a route: its campaign exists, and other parameters are small numbers or strange."""
    known = {"slug": slug, "link_key": link_key, "platform_name": "link"}
    path = path.replace("{slug}", slug)
    return re.sub(
        r"\{(\w+)(?::\w+)?\}",
        lambda name: known.get(name[1]) or rng.choice(("1", "2", "A1", "launch", "text", "9" * 19, "-1", "x%00y")),
        path,
    )


async def test_no_form_for_any_route_is_an_error_of_the_server(app, researcher, engine, subtests):
    rng = Random(SEED)
    slugs = []
    for launched in (True, False):
        campaign = await create_running_campaign(engine, launched=launched, name=f"Fuzz {launched}")
        slugs.append((campaign.slug, campaign.link_key))
    for route in iter_route_contexts(app.routes):
        for method in sorted({"POST", "PUT", "PATCH"} & (route.methods or set())):
            if (address := str(route.path)) in ENDS_THE_LOGIN or address.startswith("/api/"):
                continue
            with subtests.test(route=address, method=method):
                for _ in range(FORMS_PER_ROUTE):
                    path, form = fill_path(address, *rng.choice(slugs), rng), draw_form(rng, FIELD_NAMES)
                    reply = await researcher.request(method, path, data=form)
                    assert reply.status_code < 500, (path, form, reply.text[:500])


async def test_no_settings_of_a_new_campaign_are_an_error_of_the_server(researcher):
    rng = Random(SEED)
    usual = new_campaign_form_values() | {"name": "Verbs", "question": "How often?", "high_label": "often"}
    for _ in range(NEW_CAMPAIGNS):
        form = usual | {"design": rng.choice([*DESIGNS, "none of them"])} | draw_form(rng, list(usual))
        reply = await researcher.post("/admin/campaigns/new", data=form)
        assert reply.status_code < 500, {name: form[name] for name in form if form[name] != usual.get(name)}


@pytest.mark.parametrize("design", DESIGNS)
async def test_no_answer_to_a_hit_is_an_error_of_the_server(app, engine, design):
    rng = Random(SEED)
    settings = {"design": design, "welcome": False, "cannot_be_judged": True, "comment_on": "both", "flag_on": "both"}
    if design == "baseline":
        settings["design_settings"] = {"baseline": "v0"}
    campaign = await create_running_campaign(engine, judgments_per_item=100, **settings)
    async with http_client(app) as annotator:
        page = await annotator.post(f"/link/{campaign.link_key}", follow_redirects=True)
        token = re.search(r'name="token" value="([^"]+)"', page.text)
        assert token
        for _ in range(FORMS_PER_DESIGN):
            page = await annotator.get(f"/link/{campaign.link_key}?t={token[1]}")
            names = sorted(set(re.findall(r'\bname="([\w-]+)"', page.text)))
            hit = re.search(r'name="hit" value="(\d+)"', page.text)
            form = {"token": token[1], "hit": hit[1] if hit else "1"} | draw_form(rng, [*names, "replaces", "broken"])
            script = {"X-Easel": "fetch"} if rng.random() < 0.5 else {}
            reply = await annotator.post(f"/link/{campaign.link_key}", data=form, headers=script)
            assert reply.status_code < 500, (form, reply.text[:500])
