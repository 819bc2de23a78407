"""A campaign with the files of its items in one zip: what it makes, and how it is refused."""

import io
import stat
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.campaigns import lifecycle, settings_edits
from app.cli.commands import easel
from app.errors import Refusal
from app.imports import campaign_file_io, campaign_zip
from app.settings import Settings
from tests.annotation.hits.campaigns import NOW, fetch_rows
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.imports.test_output_media import FILES, SPOKEN
from tests.media.files import SVG, packed, png, table, wav, zipped

START = b"name: Photos\nquestion: How sharp?\ncontent: image\n"
ITEMS = b"items:\n  rows:\n  - {id: 1, text: a.png}\n  - {id: 2, text: below/b.png}\n"
MEDIA = {"media/a.png": png(), "media/below/b.png": png(grey=9)}
WHOLE = {"campaign.yaml": START + ITEMS} | MEDIA

STORED = (
    """
    SELECT i.external_id, i.shown, i.fields::text, i.prior FROM items i WHERE campaign_id = :campaign ORDER BY i.number
""",
    """
    SELECT f.name, f.content_type, f.size, sha256(string_agg(p.data, '' ORDER BY p.place))
    FROM media f JOIN media_pieces p USING (campaign_id, number) WHERE campaign_id = :campaign
    GROUP BY 1, 2, 3 ORDER BY 1
""",
    """
    SELECT o.segment, o.item, o.shown, s.external_id, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    WHERE o.campaign_id = :campaign ORDER BY 1, 2
""",
)


async def created(engine, content, **limits):
    settings = Settings(**limits)
    sent = campaign_zip.read_campaign_file_or_zip(io.BytesIO(content), "c.zip", settings)
    async with engine.begin() as connection:
        return await campaign_file_io.create_draft_from_campaign_file(
            connection, sent, now=NOW, max_mb=settings.max_upload_mb
        )


async def filed(engine, campaign, *, with_items=True):
    async with engine.begin() as connection:
        file = await campaign_file_io.build_campaign_yaml_or_zip(connection, campaign.slug, with_items=with_items)
    return file.ending, b"".join(campaign_file_io.iterate_archive_bytes_then_close(file))


async def stored_contents(engine, campaign):
    """The settings, the items, the files and the outputs of a campaign."""
    rows = [await fetch_rows(engine, statement, campaign=campaign.id) for statement in STORED]
    return lifecycle.unchecked_settings_with_deliverable_emails(campaign).model_dump(exclude={"name"}), *rows


# There and back


async def test_a_campaign_with_media_comes_back_from_its_file(engine):
    first = await create_draft(engine, content="image", source_column="scan")
    content = "id,text,scan,n\n1,photos/a.png,scan.png,x\n2,häuser.png,scan.png,y\n"
    files = {"photos/a.png": png(), "häuser.png": png(grey=7), "scan.png": png(grey=1)}
    await import_items(engine, first, content, shown="text", media=packed(files))
    ending, file = await filed(engine, first)
    assert ending == "zip"
    assert zipfile.ZipFile(io.BytesIO(file)).namelist() == ["campaign.yaml", *sorted(f"media/{name}" for name in files)]
    again = await created(engine, file)
    assert await stored_contents(engine, again) == await stored_contents(engine, first)
    assert (await filed(engine, again))[1] == file
    assert (await apply_action(engine, again)).status == "running"


async def test_files_whose_names_are_like_the_zip_s_own_folder_come_back(engine):
    first = await create_draft(engine, content="image")
    files = {"a.png": png(), "media/a.png": png(grey=3), "campaign.yaml.png": png(grey=4)}
    await import_items(engine, first, table(*files), media=packed(files))
    again = await created(engine, (await filed(engine, first))[1])
    assert await stored_contents(engine, again) == await stored_contents(engine, first)


async def test_a_campaign_of_systems_with_recordings_comes_back(engine):
    first = await create_draft(engine, content="audio", items_per_hit=3)
    await import_items(engine, first, SPOKEN, media=packed(FILES))
    again = await created(engine, (await filed(engine, first))[1])
    assert [sorted(rows) for rows in (await stored_contents(engine, again))[1:]] == [
        sorted(rows) for rows in (await stored_contents(engine, first))[1:]
    ]
    assert (await apply_action(engine, again)).status == "running"


async def test_a_large_file_comes_back_as_it_was(engine):
    first = await create_draft(engine, content="audio")
    await import_items(engine, first, table("a.wav"), media=packed({"a.wav": wav(90)}))
    again = await created(engine, (await filed(engine, first))[1])
    assert await stored_contents(engine, again) == await stored_contents(engine, first)


async def test_without_the_items_and_where_no_item_names_a_file_it_is_yaml(engine):
    first = await create_draft(engine, content="image")
    await import_items(engine, first, table("a.png"), media=packed({"a.png": png()}))
    assert (await filed(engine, first, with_items=False))[0] == "yaml"
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, first.slug, lambda it: it.model_copy(update={"content": "text"})
        )
    ending, file = await filed(engine, first)
    assert ending == "yaml"
    await created(engine, file)


async def test_a_zip_of_a_folder_will_do(engine):
    folder = {f"photos/{path}": data for path, data in WHOLE.items()} | {"photos/": b"", "__MACOSX/photos/._c": b"x"}
    made = await created(engine, zipped(folder))
    assert await fetch_rows(engine, "SELECT name FROM media ORDER BY 1") == [("a.png",), ("below/b.png",)]
    assert made.content == "image"


async def test_the_table_that_the_file_names_may_be_in_the_zip(engine):
    file = START + b"items: {file: tables/items.csv, shown: photo}\n"
    rows = b"id,photo\n1,a.png\n2,below/b.png\n"
    await created(engine, zipped(MEDIA | {"campaign.yaml": file, "tables/items.csv": rows}))
    assert await fetch_rows(engine, "SELECT shown FROM items ORDER BY number") == [("a.png",), ("below/b.png",)]


# How it is refused


async def refused(engine, content, **limits):
    with pytest.raises(Refusal) as problem:
        await created(engine, content, **limits)
    assert await fetch_rows(engine, "SELECT 1 FROM campaigns") == []
    assert "Nothing was" in problem.value.message or "nothing was" in problem.value.message
    return problem.value


async def test_what_does_not_belong_together_leaves_no_campaign_behind(engine, subtests):
    for files, code in (
        (MEDIA, "campaign_file_missing"),
        (WHOLE | {"readme.txt": b"x"}, "zip_stray"),
        (WHOLE | {"media/c.png": png()}, "media_unnamed"),
        ({"campaign.yaml": START + ITEMS, "media/a.png": png()}, "media_missing"),
        ({"campaign.yaml": START + ITEMS, "media/a.png": png(), "media/below/b.png": SVG}, "media_type_unknown"),
        ({"campaign.yaml": START + ITEMS, "media/a.png": png(), "media/below/b.png": wav()}, "media_wrong_kind"),
        ({"campaign.yaml": START} | MEDIA, "items_not_sent"),
        ({"campaign.yaml": START + b"items: {file: items.csv}\n"} | MEDIA, "items_not_sent"),
        (WHOLE | {"../a.png": png()}, "media_name_unsafe"),
        (WHOLE | {"media/../../a.png": png()}, "media_name_unsafe"),
        ({"campaign.yaml": b"#" * (3 * 2**20)}, "file_too_large"),
        ({"campaign.yaml": START + b"items: {file: a.csv}\n", "a.csv": b"id,text\n" * 2**18}, "file_too_large"),
    ):
        with subtests.test(files=files, code=code):
            assert (await refused(engine, zipped(files), max_upload_mb=1)).code == code


async def test_what_is_too_large_is_refused_by_what_the_zip_says(engine):
    bomb = WHOLE | {"media/a.png": png() + bytes(3 * 2**20)}
    assert len(zipped(bomb)) < 2**16
    assert (await refused(engine, zipped(bomb), max_media_file_mb=2)).code == "media_file_too_large"
    assert (await refused(engine, zipped(bomb), max_media_mb=2)).code == "media_too_large"


async def test_a_mistake_in_the_file_is_told_with_its_line_and_the_zip_is_not_unpacked(engine):
    wrong = WHOLE | {"campaign.yaml": b"name: Photos\nquesion: x\nseed: y\n", "media/a.png": SVG}
    problem = await refused(engine, zipped(wrong))
    assert problem.code == "campaign_file_invalid"
    assert [(one["line"], one["field"]) for one in problem.details["mistakes"]] == [
        (1, "question"),
        (2, "quesion"),
        (3, "seed"),
    ]
    missing = await refused(engine, zipped({"campaign.yaml": START + ITEMS, "media/a.png": png()}))
    assert (missing.details["line"], missing.details["file"]) == (7, "below/b.png")
    assert missing.message.startswith("campaign.yaml: Line 7: ")


@pytest.mark.filterwarnings("ignore:Duplicate name")
async def test_odd_zips_are_refused(engine):
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as made:
        for _ in range(2):
            made.writestr("campaign.yaml", START)
    assert (await refused(engine, twice.getvalue())).code == "media_twice"
    link = io.BytesIO()
    with zipfile.ZipFile(link, "w") as made:
        info = zipfile.ZipInfo("campaign.yaml")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        made.writestr(info, "/etc/passwd")
    assert (await refused(engine, link.getvalue())).code == "media_name_unsafe"
    assert (await refused(engine, zipped(WHOLE)[:-30])).code == "zip_unreadable"
    torn = bytearray(zipped(WHOLE))
    torn[torn.index(b"campaign.yaml") + 20] ^= 255
    assert (await refused(engine, bytes(torn))).code == "zip_unreadable"


# Where it is sent and got


async def test_pages_give_and_take_it(engine, researcher):
    first = await create_draft(engine, content="image")
    await import_items(engine, first, table("a.png"), media=packed({"a.png": png()}))
    address = f"/admin/campaigns/{first.slug}"
    assert f"{address}/campaign.zip" in (await researcher.get(f"{address}/export")).text
    got = await researcher.get(f"{address}/campaign.zip")
    assert got.headers["content-type"] == "application/zip"
    assert got.headers["content-disposition"].startswith('attachment; filename="verbs-campaign-20')
    assert int(got.headers["content-length"]) == len(got.content)
    made = await researcher.post("/admin/campaigns/new/file", files={"file": ("verbs-campaign.zip", got.content)})
    assert made.headers["location"] == "/admin/campaigns/verbs-2/items?done=created"
    created = (await researcher.get(made.headers["location"])).text
    assert "Draft created. " in created
    assert "Next: upload items" not in created
    assert "<img src=" in (await researcher.get("/admin/campaigns/verbs-2/items")).text
    wrong = await researcher.post("/admin/campaigns/new/file", files={"file": ("c.zip", zipped(MEDIA))})
    assert wrong.status_code == 422
    assert "There is no file campaign.yaml in this zip." in wrong.text


def test_the_command_writes_and_reads_it(database_url, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("DATABASE_URL", database_url)
    path = tmp_path / "photos.zip"
    path.write_bytes(zipped(WHOLE))

    def run(*words):
        return CliRunner().invoke(easel, ["campaign", *words], catch_exceptions=False)

    assert run("create", str(path), "--seed", "5").output == "photos\n"
    again = tmp_path / "again.zip"
    assert run("file", "photos", "--items", "-o", str(again)).exit_code == 0
    assert run("create", str(again)).output == "photos-2\n"
    assert b"seed: 5" in zipfile.ZipFile(again).read("campaign.yaml")
