"""Campaign files and question templates for programs."""

from app.campaigns.question_names import QUESTION_NAMES
from tests.api.conftest import API
from tests.media.files import png, zipped

FILES = f"{API}/campaigns/files"
YAML = {"content-type": "application/yaml"}
START = "name: Verbs\nquestion: How often?\n"
ITEMS = "items:\n  rows:\n  - {id: a, text: run}\n  - {id: b, text: go}\n"


async def test_a_campaign_is_made_from_a_file_and_given_as_one(api_client):
    made = await api_client.post(FILES, content=START + ITEMS, headers=YAML)
    assert made.status_code == 201
    assert (made.json()["slug"], made.json()["items"]) == ("verbs", 2)
    given = await api_client.get(f"{API}/campaigns/verbs/file", params={"items": True})
    assert given.headers["content-type"].startswith("application/yaml")
    again = await api_client.post(FILES, files={"file": ("verbs.yaml", given.content)})
    assert again.json()["settings"] == made.json()["settings"]
    assert (await api_client.get(f"{API}/campaigns/verbs-2/file", params={"items": True})).text == given.text
    assert "rows:" not in (await api_client.get(f"{API}/campaigns/verbs/file")).text


async def test_a_zip_brings_the_files_of_the_items_and_is_given_again(api_client):
    items = "items: {rows: [{id: a, text: a.png}, {id: b, text: b.png}]}\n"
    sent = zipped(
        {"campaign.yaml": f"{START}content: image\n{items}".encode(), "media/a.png": png(), "media/b.png": png(grey=1)}
    )
    made = await api_client.post(FILES, content=sent, headers={"content-type": "application/zip"})
    assert (made.status_code, made.json()["items"]) == (201, 2)
    given = await api_client.get(f"{API}/campaigns/verbs/file", params={"items": True})
    assert given.headers["content-type"] == "application/zip"
    again = await api_client.post(FILES, files={"file": ("verbs.zip", given.content)})
    assert again.json()["settings"] == made.json()["settings"]
    assert (await api_client.get(f"{API}/campaigns/verbs/file")).text.startswith("# A campaign of Easel")


async def test_mistakes_come_with_their_lines_and_nothing_is_created(api_client):
    reply = await api_client.post(FILES, content="name: Verbs\nquesion: How?\nseed: x\n", headers=YAML)
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert error["code"] == "campaign_file_invalid"
    assert [(found["line"], found["field"]) for found in error["details"]["mistakes"]] == [
        (1, "question"),
        (2, "quesion"),
        (3, "seed"),
    ]
    wrong = await api_client.post(FILES, content=START + ITEMS.replace("b,", "a,"), headers=YAML)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "id_twice")
    assert (await api_client.get(f"{API}/campaigns")).json() == {"campaigns": []}


async def test_a_file_beside_is_not_read_from_the_server(api_client):
    reply = await api_client.post(FILES, content=START + "items: {file: /etc/passwd}\n", headers=YAML)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "items_not_sent")


async def test_a_large_file_is_refused(api_client):
    reply = await api_client.post(FILES, content=START + "#" * 3 * 2**20, headers=YAML)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "file_too_large")


async def test_the_templates_are_settings_of_campaigns(api_client):
    found = (await api_client.get(f"{API}/templates")).json()["templates"]
    assert [template["name"] for template in found] == [*QUESTION_NAMES]
    made = await api_client.post(f"{API}/campaigns", json=found[0]["settings"])
    assert made.json()["settings"] == found[0]["settings"]


async def test_a_file_and_a_copy_keep_how_comments_are_asked_for(api_client):
    asking = "comment_on: items\ncomment_request: required\ncomment_question: What decided it?\n"
    await api_client.post(FILES, content=START + asking + ITEMS, headers=YAML)
    given = (await api_client.get(f"{API}/campaigns/verbs/file")).text
    assert "comment_request: required\n" in given
    assert "comment_question: What decided it?\n" in given
    copied = (await api_client.post(f"{API}/campaigns/verbs/copies")).json()
    settings = (await api_client.get(f"{API}/campaigns/{copied['slug']}")).json()["settings"]
    assert (settings["comment_request"], settings["comment_question"]) == ("required", "What decided it?")


async def test_a_file_from_before_comments_could_be_required_offers_them(api_client):
    made = await api_client.post(FILES, content=START + "comment_on: both\n" + ITEMS, headers=YAML)
    settings = made.json()["settings"]
    assert (settings["comment_on"], settings["comment_request"]) == ("both", "offered")
