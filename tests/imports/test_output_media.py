"""Outputs of systems that are files: they come with the table, and are the same where their bytes are."""

import pytest

from app.annotation.hits import media_report
from app.campaigns import lifecycle, settings_edits
from app.campaigns.settings import CampaignSettings
from app.database.session import borrow_autocommit_driver, driver_of
from app.errors import Refusal
from app.record.outputs import load_segment_index
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import VERBS, apply_action, create_draft, import_items, replay_is_clean
from tests.campaigns.test_routes import create
from tests.media.files import SVG, packed, png, wav
from tests.media.files import table as items_table

HEADER = "system,segment,output,source\n"
SPOKEN = HEADER + "".join(
    f"{system},s{k},{system}/{k}.wav,Sentence {k}\n" for k in range(3) for system in ("ape", "bee", "cat")
)
FILES = {
    f"{system}/{k}.wav": wav(length) for k in range(3) for system, length in (("ape", 0.1), ("bee", 0.1), ("cat", 0.2))
}


async def of_speech(engine, **settings):
    """A launched campaign of three systems, of which two say the same."""
    campaign = await create_draft(engine, content="audio", items_per_hit=3, **settings)
    await import_items(engine, campaign, SPOKEN, media=packed(FILES))
    return await apply_action(engine, campaign)


async def alike(engine, campaign):
    """Of each output, by segment, the first system whose output is the same."""
    async with engine.connect() as connection:
        systems = await fetch_value(engine, "SELECT count(*) FROM items WHERE campaign_id = :id", id=campaign.id)
        segments = await fetch_value(engine, "SELECT count(*) FROM segments WHERE campaign_id = :id", id=campaign.id)
        return (
            await load_segment_index(await driver_of(connection), campaign.id, segments, systems)
        ).first_with_same_output.tolist()


async def test_outputs_come_with_the_files_that_they_name(engine):
    campaign = await of_speech(engine)
    assert campaign.status == "running"
    assert await fetch_rows(engine, "SELECT count(*), min(content_type) FROM media") == [(9, "audio/wav")]


async def test_outputs_of_the_same_bytes_are_the_same_whatever_they_are_called(engine):
    campaign = await of_speech(engine)
    assert await alike(engine, campaign) == [[0, 0, 2]] * 3
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    assert len(hit.items) == 2
    await submit_scores(engine, me, hit)
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM current_posteriors") == [(1,)]
    assert await replay_is_clean(engine, campaign.slug)


async def test_markdown_is_the_same_where_words_and_images_are(engine):
    campaign = await create_draft(engine, content="markdown", items_per_hit=2)
    rows = {"ape": "Look: ![](a.png)", "bee": "Look: ![](b.png)", "cat": "See: ![](a.png)", "doe": "Look: ![](c.png)"}
    content = "system,segment,output\n" + "".join(f"{system},s,{text}\n" for system, text in rows.items())
    files = {"a.png": png(), "b.png": png(), "c.png": png(grey=3)}
    await import_items(engine, campaign, content, media=packed(files))
    assert await alike(engine, await apply_action(engine, campaign)) == [[0, 0, 2, 3]]


async def test_a_system_that_joins_brings_its_files(engine):
    campaign = await of_speech(engine)
    joining = HEADER + "doe,s0,doe/0.wav,\ndoe,s1,cat/1.wav,\n"
    with pytest.raises(Refusal) as refused:
        await import_items(engine, campaign, joining)
    assert (refused.value.code, refused.value.details["line"]) == ("media_missing", 2)
    await import_items(engine, campaign, joining, media=packed({"doe/0.wav": wav(0.2)}))
    assert await alike(engine, campaign) == [[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 2, -1]]
    assert await replay_is_clean(engine, campaign.slug)


async def test_what_does_not_fit_is_refused_and_nothing_is_stored(engine, subtests):
    for rows, files, expected in (
        ("ape,s,a.wav,\nbee,s,b.wav,\n", {"a.wav": wav()}, ("media_missing", 3)),
        ("ape,s,a.wav,\n", {"a.wav": wav(), "b.wav": wav()}, ("media_unnamed", None)),
        ("ape,s,a.wav,\n", {"a.wav": png()}, ("media_wrong_kind", 2)),
        ("ape,s,a.wav,\n", {"a.wav": SVG}, ("media_type_unknown", None)),
        ("ape,s,a.wav,face.png\n", {"a.wav": wav()}, ("media_missing", 2)),
        ("ape,s,a.wav,\nbee,s,https://e.org/b.wav,\n", {"a.wav": wav()}, ("media_link_refused", 3)),
        ("ape,s,../a.wav,\n", {"../a.wav": wav()}, ("media_name_unsafe", None)),
    ):
        with subtests.test(rows=rows, files=files, expected=expected):
            campaign = await create_draft(engine, content="audio")
            with pytest.raises(Refusal) as refused:
                await import_items(engine, campaign, HEADER + rows, media=packed(files))
            assert (refused.value.code, refused.value.details.get("line")) == expected
            stored = (
                "SELECT (SELECT count(*) FROM items) + (SELECT count(*) FROM outputs) + (SELECT count(*) FROM media)"
            )
            assert await fetch_value(engine, stored) == 0


@pytest.mark.parametrize(
    ("settings", "code"), [({"content": "image"}, "media_wrong_kind"), ({"source_column": "x"}, "content_of_systems")]
)
async def test_a_launch_looks_whether_the_outputs_still_fit_the_settings(engine, settings, code):
    campaign = await create_draft(engine, content="audio", items_per_hit=2)
    await import_items(engine, campaign, SPOKEN, media=packed(FILES))
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda it: CampaignSettings(**it.model_dump() | settings)
        )
    with pytest.raises(Refusal) as refused:
        await apply_action(engine, campaign)
    assert refused.value.code == code
    assert await fetch_value(engine, "SELECT count(*) FROM outputs WHERE digest IS NOT NULL") == 0


@pytest.mark.parametrize("then", [VERBS, "system,segment,output\nape,s,a.wav\nbee,s,b.wav\n"])
async def test_files_go_with_the_outputs_that_are_replaced(engine, then):
    campaign = await create_draft(engine, content="audio")
    await import_items(engine, campaign, SPOKEN, media=packed(FILES))
    new = {"a.wav": wav(), "b.wav": wav()}
    content, files = (items_table(*new), new) if then == VERBS else (then, new)
    await import_items(engine, campaign, content, media=packed(files), replace=True)
    assert await fetch_value(engine, "SELECT count(*) FROM media") == 2


async def test_outputs_of_a_copy_are_the_same_too(engine):
    campaign = await of_speech(engine)
    async with engine.begin() as connection:
        copy = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    assert await alike(engine, await apply_action(engine, copy)) == [[0, 0, 2]] * 3


async def test_texts_may_stand_below_an_image(engine, client):
    """Captions: the source of a segment is what they are captions of."""
    campaign = await create_draft(engine, items_per_hit=2)
    content = HEADER + "ape,s,A dog,dog.png\nbee,s,A cat,dog.png\n"
    await import_items(engine, campaign, content, media=packed({"dog.png": png()}))
    page = await client.post(f"/link/{(await apply_action(engine, campaign)).link_key}", follow_redirects=True)
    assert page.text.count("<img src=") == 1
    assert "dog.png" not in page.text


async def test_recordings_are_played_from_addresses_that_do_not_name_their_system(engine, client):
    campaign = await of_speech(engine)
    entrance = await client.get(f"/mturk/{campaign.link_key}")
    page = await client.post(f"/link/{campaign.link_key}", follow_redirects=True)
    for shown in (entrance.text, page.text):
        assert shown.count("<audio src=") == 2
        assert "ape" not in shown
        assert "Sentence " in shown


async def test_recordings_are_imported_from_the_page_and_heard_by_segment(researcher):
    address = await create(researcher, content="audio", items_per_hit="3")
    zip_ = packed(FILES).file.read()
    parts = {"file": ("a.csv", SPOKEN), "media": ("a.zip", zip_)}
    assert "9 outputs" in (await researcher.post(f"{address}/items/preview", files=parts)).text
    done = await researcher.post(f"{address}/items", files=parts)
    assert done.headers["location"] == f"{address}/items?done=imported"
    page = (await researcher.get(f"{address}/items?segment=s1")).text
    assert page.count("<audio src=") == 3
    assert "There is no file" not in page
    assert (await researcher.get(f"{address}/try/hit")).text.count("<audio src=") == 3
    assert (await researcher.post(f"{address}/launch")).headers["location"] == f"{address}/share?done=launched"
    assert "There is no file" not in (await researcher.get(f"{address}?item=ape")).text


async def test_the_page_says_which_output_did_not_load(engine, researcher):
    campaign = await of_speech(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    async with borrow_autocommit_driver(engine) as connection:
        await media_report.store_media_report(connection, me, hit.id, 2, now=NOW)
    address = f"/admin/campaigns/{campaign.slug}/items"
    page = (await researcher.get(f"{address}?segment=s{hit.segment}")).text
    assert "Did not load for 1 annotator." in page
    assert "1 output did not load" in page
