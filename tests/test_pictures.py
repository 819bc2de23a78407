"""The pictures of README and docs are small, all from the script, and show the pages as they are."""

import json
import re
from datetime import UTC, datetime

import pytest

from app.imports.demo import find_or_launch_demo_campaign
from docs.picture_outlines import (
    MAX_BYTES,
    OUTLINES,
    PICTURES,
    RETAKE,
    VARIANTS,
    fetch_outlines,
    outline,
    outline_changes_text,
    read_outlines,
)
from docs.picture_scenes import SCENES
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.conftest import http_client

BY_OTHER_MEANS = {"memory.svg", OUTLINES.name}


async def answer_hit(app, link):
    async with http_client(app) as annotator:
        page = await annotator.post(link, follow_redirects=True)
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        scores = {name: str(10 * place) for place, name in enumerate(re.findall(r'name="(score-\d+)"', page.text), 1)}
        (await annotator.post(page.url, data=fields | scores)).raise_for_status()


async def test_every_picture_shows_its_page_as_it_is(app, api_client, researcher):  # noqa: F811
    async with app.state.database.begin() as connection:
        link = f"/link/{(await find_or_launch_demo_campaign(connection, now=datetime.now(UTC))).link_key}"
    systems, hits = "", {"hit": link}
    for scene in SCENES:
        created = await api_client.post("/api/v1/campaigns/files", content=json.dumps(scene.campaign_file()))
        slug = created.json()["slug"]
        launched = await api_client.post(f"/api/v1/campaigns/{slug}/transitions", json={"action": "launch"})
        hits[scene.file] = launched.json()["links"]["link"]
        if scene.file == "systems":
            systems = slug

    async def read(path):
        return (await researcher.get(path)).raise_for_status().text

    async def begin(path):
        async with http_client(app) as annotator:
            return (await annotator.post(path, follow_redirects=True)).raise_for_status().text

    await answer_hit(app, link)
    changes = outline_changes_text(read_outlines(), await fetch_outlines(read, begin, hits, systems))
    if changes:
        pytest.fail(f"{RETAKE}, since these outlines changed:\n{changes}", pytrace=False)


def test_changes_of_outlines_show_lines_that_moved_or_are_there_more_often():
    stored = {"campaigns": ["h1: Campaigns", "button: Save", "nav: Help"], "hit": ["button: Submit"]}
    served = {"campaigns": ["h1: Campaigns", "button: Save", "button: Save", "nav: Help"], "hit": ["button: Submit"]}
    assert outline_changes_text(stored, stored) == ""
    assert outline_changes_text(stored, served).splitlines() == [
        "--- campaigns, stored",
        "+++ campaigns, served",
        "@@ -2,2 +2,3 @@",
        " button: Save",
        "+button: Save",
        " nav: Help",
    ]


def test_every_picture_is_small_and_from_the_script():
    stored = {path.name: path.stat().st_size for path in PICTURES.iterdir() if path.name not in BY_OTHER_MEANS}
    assert stored.keys() == {f"{picture}.png" for picture in [*read_outlines(), *VARIANTS]}
    assert {name: size for name, size in stored.items() if size > MAX_BYTES} == {}


def test_an_outline_is_the_text_of_navigation_headings_and_buttons():
    page = (
        "<h1>Verbs\n  of English</h1><nav><a href=/x>Over<b>view</b></a> <a>Share</a></nav>"
        "<p>Words, <a href=/y>a link</a></p><button aria-label=x>Pause</button>"
        "<details><summary>Keys</summary>1</details>"
    )
    assert outline(page) == ["h1: Verbs of English", "nav: Overview", "nav: Share", "button: Pause"]
