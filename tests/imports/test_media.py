"""Items that name files: both come together, or neither does."""

import pytest

from app.campaigns import empty_campaigns, lifecycle, settings_edits
from app.campaigns.settings import CampaignSettings
from app.errors import Invalid, Refusal
from tests.annotation.hits.campaigns import NOW, execute_sql, fetch_rows, fetch_value
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.media.files import SVG, packed, png, table, wav, with_files

TWO = {"a.png": png(), "b.png": png(grey=10)}
STORED = "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM media), (SELECT count(*) FROM media_pieces)"


async def refused(engine, campaign, content, files, **how):
    """The code, the line and the file of an import that is refused, after which the database is as it was."""
    before = await fetch_rows(engine, STORED)
    with pytest.raises(Refusal) as problem:
        await import_items(engine, campaign, content, media=packed(files) if files else None, **how)
    assert await fetch_rows(engine, STORED) == before
    return problem.value.code, problem.value.details.get("line"), problem.value.details.get("file")


async def test_items_come_with_the_files_that_they_name(engine):
    campaign = await with_files(engine, TWO, content="image")
    assert campaign.status == "running"
    assert await fetch_rows(engine, "SELECT number, name, content_type, size FROM media ORDER BY number") == [
        (k, name, "image/png", len(data)) for k, (name, data) in enumerate(TWO.items())
    ]


async def test_what_does_not_fit_is_refused_and_nothing_is_stored(engine, subtests):
    for names, files, expected in (
        (["a.png", "c.png"], TWO, ("media_unnamed", None, "b.png")),
        (["a.png", "b.png", "c.png"], TWO, ("media_missing", 4, "c.png")),
        (["a.png"], None, ("media_missing", 2, "a.png")),
        (["a.png"], {"a.png": SVG}, ("media_type_unknown", None, "a.png")),
        (["a.png"], {"a.png": wav()}, ("media_wrong_kind", 2, "a.png")),
        (["a.png", "https://e.org/b.png"], {"a.png": png()}, ("media_link_refused", 3, "https://e.org/b.png")),
        (["../a.png"], {"../a.png": png()}, ("media_name_unsafe", None, "../a.png")),
        (["x" * 100_001], None, ("cell_too_long", 2, None)),
    ):
        with subtests.test(names=names, files=files, expected=expected):
            campaign = await create_draft(engine, content="image")
            assert await refused(engine, campaign, table(*names), files) == expected


async def test_all_files_that_are_missing_and_all_that_nobody_names_are_named_at_once(engine):
    campaign = await create_draft(engine, content="image")
    files = {name: png() for name in ("a.png", "left.png", "over.png")}
    with pytest.raises(Invalid) as problem:
        await import_items(engine, campaign, table("a.png", "b.png", "c.png"), media=packed(files))
    assert problem.value.code == "media_unnamed"
    assert problem.value.message.startswith(
        "No item names “left.png” and “over.png” in the zip. It lacks “b.png” and “c.png”, which items name."
    )
    assert problem.value.details["missing"] == ["b.png", "c.png"]
    skipping = packed(files)._replace(skip_unnamed=True)
    with pytest.raises(Invalid, match=r"there are no files “b.png” and “c.png” in the zip") as problem:
        await import_items(engine, campaign, table("a.png", "b.png", "c.png"), media=skipping)
    assert problem.value.code == "media_missing"
    assert await fetch_rows(engine, STORED) == [(0, 0, 0)]


async def test_files_that_nobody_names_are_left_out_where_that_is_wished(engine):
    campaign = await create_draft(engine, content="image")
    files = {"a.png": png(), "over.png": png(), "notes.txt": b"none"}
    assert await import_items(engine, campaign, table("a.png"), media=packed(files)._replace(skip_unnamed=True)) == 1
    assert await fetch_rows(engine, "SELECT name FROM media") == [("a.png",)]


async def test_a_zip_beside_plain_texts_is_refused(engine):
    campaign = await create_draft(engine)
    assert (await refused(engine, campaign, table("a.png"), {"a.png": png()}))[0] == "media_unnamed"


async def test_files_are_added_with_more_items_and_go_with_those_that_are_replaced(engine):
    campaign = await create_draft(engine, content="image")
    await import_items(engine, campaign, table("a.png"), media=packed({"a.png": png()}))
    await import_items(engine, campaign, "id,text\nx,b.png\ny,a.png\n", media=packed({"b.png": png()}))
    assert await refused(engine, campaign, "id,text\nz,a.png\n", {"a.png": png()}) == ("media_twice", None, "a.png")
    await import_items(engine, campaign, table("c.png"), media=packed({"c.png": png()}), replace=True)
    assert await fetch_rows(engine, "SELECT name FROM media") == [("c.png",)]


async def test_files_may_stand_in_markdown_and_beside_the_items(engine):
    campaign = await create_draft(engine, content="markdown", source_column="scan")
    content = "id,text,scan\n1,![](a.png) words,b.png\n2,no file,b.png\n"
    assert await import_items(engine, campaign, content, media=packed(TWO)) == 2
    assert (await refused(engine, campaign, "id,text,scan\n3,x,other.png\n", None)) == ("media_missing", 2, "other.png")
    assert (await refused(engine, campaign, "id,text\n3,x\n", None))[0] == "column_unknown"
    long = f"id,text,scan\n3,x,{'y' * 100_001}\n"
    assert (await refused(engine, campaign, long, None))[:2] == ("cell_too_long", 2)


async def test_with_links_allowed_an_item_may_lie_elsewhere(engine):
    campaign = await create_draft(engine, content="image", https_media=True)
    assert await import_items(engine, campaign, table("https://e.org/a.png")) == 1
    assert (await refused(engine, campaign, "id,text\n9,http://e.org/a.png\n", None))[0] == "media_link_refused"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"content": "image"}, "media_missing"),
        ({"source_column": "scan"}, "column_unknown"),
    ],
)
async def test_a_launch_looks_whether_the_items_still_fit_the_settings(engine, settings, code):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, table("a", "b", "c", "d", "e"))
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda it: CampaignSettings(**it.model_dump() | settings)
        )
    with pytest.raises(Refusal) as problem:
        await apply_action(engine, campaign)
    assert problem.value.code == code
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "draft"


async def test_a_copy_has_files_of_its_own(engine):
    campaign = await with_files(engine, TWO, content="image", https_media=True)
    async with engine.begin() as connection:
        copy = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    assert (copy.content, copy.https_media) == ("image", True)
    pieces = (
        "SELECT name, content_type, size, data FROM media JOIN media_pieces USING (campaign_id, number) "
        "WHERE campaign_id = :campaign ORDER BY number, place"
    )
    first, second = [await fetch_rows(engine, pieces, campaign=row.id) for row in (campaign, copy)]
    assert first == second
    async with engine.begin() as connection:
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, copy.slug)
    assert await fetch_value(engine, "SELECT count(*) FROM media_pieces") == len(first)
    await execute_sql(engine, "DELETE FROM campaigns")
    assert await fetch_value(engine, "SELECT count(*) FROM media_pieces") == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"differences": "reference"}, "name the reference column"),
        ({"differences": "pair", "content": "html"}, "only texts"),
        ({"content": "pdf"}, "should be text or markdown"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        CampaignSettings(name="x", question="y", **settings)
