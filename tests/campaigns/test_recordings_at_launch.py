"""Recordings that will not play as the settings ask are named at the launch, from every door."""

import io

import pytest

from app.errors import Conflict
from app.media.media_zip import MediaZip
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.media.files import wav, zipped

UNREADABLE = b"ID3" + bytes(300)


@pytest.fixture
def engine(app):
    return app.state.database


async def draft_with_recordings(engine, files, rows=None, **settings):
    campaign = await create_draft(engine, content="audio", items_per_hit=2, **settings)
    table = rows or "id,text\n" + "".join(f"{name[0]},{name}\n" for name in files)
    media = MediaZip(io.BytesIO(zipped(files)), 16, 64)
    await import_items(engine, campaign, table, media=media)
    return campaign


async def launch_page(researcher, campaign):
    return (await researcher.get(f"/admin/campaigns/{campaign.slug}/launch/confirm")).text


async def test_lengths_that_differ_are_named_where_people_switch_at_the_same_position(researcher, engine):
    files = {"a.wav": wav(1), "b.wav": wav(1.04), "c.wav": wav(2)}
    campaign = await draft_with_recordings(engine, files, switch_sounds="same position")
    page = await launch_page(researcher, campaign)
    assert "Lengths differ: a.wav (1.00 s) and c.wav (2.00 s)." in page


async def test_of_systems_only_recordings_of_one_segment_must_be_equal(researcher, engine):
    files = {"a.wav": wav(1), "b.wav": wav(1), "c.wav": wav(2), "d.wav": wav(2.5)}
    rows = "system,segment,output\nx,s1,a.wav\ny,s1,b.wav\nx,s2,c.wav\ny,s2,d.wav\n"
    settings = {"switch_sounds": "same position"}
    equal = await draft_with_recordings(engine, files | {"d.wav": wav(2)}, rows, **settings)
    assert "Lengths differ" not in await launch_page(researcher, equal)
    other = await draft_with_recordings(engine, files, rows, name="Other", **settings)
    page = await launch_page(researcher, other)
    assert "Lengths differ in 1 segment, such as “s2”: c.wav (2.00 s) and d.wav (2.50 s)." in page


async def test_recordings_that_are_too_long_to_switch_are_named(researcher, engine):
    campaign = await draft_with_recordings(engine, {"a.wav": wav(1), "b.wav": wav(61)}, switch_sounds="restart")
    page = await launch_page(researcher, campaign)
    assert "Recordings longer than 60 seconds" in page
    assert "b.wav (61.00 s)." in page
    assert "Lengths differ" not in page


async def test_recordings_whose_length_cannot_be_read_are_named_where_they_must_be_played(researcher, engine):
    files = {"a.wav": wav(1), "b.mp3": UNREADABLE}
    campaign = await draft_with_recordings(engine, files, must_play="end")
    assert "The length of b.mp3 cannot be read. Play it in the preview" in await launch_page(researcher, campaign)
    careless = await draft_with_recordings(engine, files, name="Careless")
    assert "cannot be read" not in await launch_page(researcher, careless)


async def test_a_program_that_launches_reads_the_same(api_client, engine):  # noqa: F811  (the fixture)
    campaign = await draft_with_recordings(engine, {"a.wav": wav(1), "b.wav": wav(2)}, switch_sounds="same position")
    reply = await api_client.post(f"/api/v1/campaigns/{campaign.slug}/transitions", json={"action": "launch"})
    assert reply.status_code == 200, reply.text
    (note,) = reply.json()["notes"]
    assert "a.wav (1.00 s) and b.wav (2.00 s)" in note


PRACTICE = "text,expected\n{},1\nb.wav,2\n"


async def test_a_launch_is_refused_if_a_practice_item_names_a_missing_file(engine, subtests):
    files = {"a.wav": wav(), "b.wav": wav()}
    for step, title in (("training", "Training"), ("qualification", "Qualification")):
        with subtests.test(step=step):
            settings = {"design": "pairwise", "name": title, step: PRACTICE.format("nothere.wav")}
            campaign = await draft_with_recordings(engine, files, **settings)
            with pytest.raises(Conflict) as problem:
                await apply_action(engine, campaign)
            assert problem.value.code == "media_missing"
            assert problem.value.message.startswith(
                f"{title}, item 1: there is no file “nothere.wav” in the zip or in the campaign."
            )


async def test_the_page_of_a_refused_launch_leads_to_the_setting(engine, researcher):
    files = {"a.wav": wav(), "b.wav": wav()}
    campaign = await draft_with_recordings(engine, files, design="pairwise", training=PRACTICE.format("nothere.wav"))
    address = f"/admin/campaigns/{campaign.slug}"
    page = (await researcher.post(f"{address}/launch")).text
    assert "Training, item 1: there is no file" in page
    link = f"{address}/settings?setting=training"
    assert f'href="{link}">Change the setting</a>' in page
    assert 'name="training"' in (await researcher.get(link, follow_redirects=True)).text


async def test_practice_items_may_name_files_of_the_campaign(engine):
    files = {"a.wav": wav(), "b.wav": wav()}
    campaign = await draft_with_recordings(engine, files, design="pairwise", training=PRACTICE.format("a.wav"))
    assert (await apply_action(engine, campaign)).status == "running"
