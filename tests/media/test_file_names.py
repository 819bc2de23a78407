"""Names of files in a table, found in a zip though they are spelled in another way."""

from unicodedata import normalize

import pytest

from app.errors import Refusal
from app.media.match_file_names import match_names_to_paths, note_on_respelled_names_or_none
from app.media.media_zip import iterate_unpacked_media_pieces_or_refuse
from tests.annotation.hits.campaigns import fetch_rows
from tests.campaigns.drafts import create_draft, import_file
from tests.growth import grows_too_fast
from tests.media.files import packed, png


def stored(files, *wanted, have=()):
    """Return the stored names of a zip's files, and those that were spelled in another way."""
    respelled: dict[str, str] = {}
    return sorted(
        {piece.name for piece in iterate_unpacked_media_pieces_or_refuse(packed(files), wanted, have, 0, respelled)}
    ), respelled


def refusal(files, *wanted):
    with pytest.raises(Refusal) as problem:
        stored(files, *wanted)
    return problem.value


def test_a_file_is_found_in_another_spelling_and_kept_by_the_name_of_the_table(subtests):
    for path, name in (
        ("haus.PNG", "haus.png"),
        ("Haus.png", "haus.PNG"),
        ("img/a.png", "img\\a.png"),
        ("img/A.PNG", "img\\a.png"),
        ("img/a.png", ".\\img\\a.png"),
        ("img/a.png", "C:\\Users\\me\\study\\img\\a.png"),
        ("a.png", "/home/me/img/a.png"),
        ("deep/img/a.png", "img/a.png"),
        (normalize("NFD", "tür.png"), normalize("NFC", "tür.png")),
        (normalize("NFC", "tür.png"), normalize("NFD", "tür.png")),
        (normalize("NFD", "TÜR.PNG"), normalize("NFC", "tür.png")),
    ):
        with subtests.test(path=path, name=name):
            other = {"other/b.png": png(), path: png()}
            names, respelled = stored(other, name, "other/b.png")
            assert names == sorted([name, "other/b.png"])
            assert list(respelled) in ([name], [])
            assert respelled or normalize("NFC", path) == name


def test_a_path_that_is_written_exactly_comes_first():
    files = {"a.png": png(), "A.png": png()}
    assert stored(files, "a.png", "A.png") == (["A.png", "a.png"], {})


def test_two_spellings_of_one_file_are_both_kept():
    assert stored({"a.png": png()}, "a.png", "A.PNG") == (["A.PNG", "a.png"], {"A.PNG": "a.png"})


def test_a_name_that_may_be_either_of_two_files_is_refused_as_that():
    problem = refusal({"x/a.png": png(), "y/a.png": png(), "b.png": png()}, "a.png", "b.png")
    assert problem.code == "media_unnamed"
    assert "could match the name “a.png” in the items, but so could another file" in problem.message


def test_a_file_that_no_item_names_is_no_fault_of_the_column_where_others_are_named():
    assert "Take it out of the zip" in refusal({"a.png": png(), "c.png": png()}, "a.png").message
    assert "Did you choose the column of file names" in refusal({"c.png": png()}, "some words").message


def test_paths_with_backslashes_as_programs_of_windows_pack_them_are_folders():
    assert stored({"img\\a.png": png(), "b.png": png()}, "img/a.png", "b.png")[0] == ["b.png", "img/a.png"]


def find_files_of_speakers(count):
    paths = {f"speaker-{k}/audio.wav": [f"speaker-{k}/audio.wav"] for k in range(count)}
    return match_names_to_paths(paths, [path.replace("/", "\\") for path in paths], [])


def test_files_of_one_name_in_many_folders_are_found_at_once():
    found = find_files_of_speakers(4_000)
    assert len(found.path_by_respelled_name) == 4_000
    assert not found.ambiguous_name_by_path
    assert not grows_too_fast(find_files_of_speakers, 500, 4_000)


def test_what_was_respelled_is_told_by_a_few_of_them():
    said = note_on_respelled_names_or_none({f"{k}.png": f"{k}.PNG" for k in range(5)})
    assert said is not None
    assert "“0.PNG” for “0.png”" in said
    assert said.endswith("and 2 more.")


async def test_items_with_files_in_another_spelling_are_imported_and_it_is_told(engine):
    campaign = await create_draft(engine, content="image")
    zip_ = packed({"img/haus.PNG": png(), "img/tuer.PNG": png()})
    done = await import_file(engine, campaign, "id,text\n1,img\\haus.png\n2,img\\tuer.png\n", media=zip_)
    assert await fetch_rows(engine, "SELECT name FROM media ORDER BY name") == [("img\\haus.png",), ("img\\tuer.png",)]
    assert any("“img/haus.PNG” for “img\\haus.png”" in note for note in done.notes)


async def test_a_file_that_is_missing_is_told_with_the_one_that_is_nearly_it(engine):
    campaign = await create_draft(engine, content="image")
    await import_file(engine, campaign, "id,text\n1,haus.png\n", media=packed({"haus.png": png()}))
    with pytest.raises(Refusal) as problem:
        await import_file(engine, campaign, "id,text\n2,Haus.png\n")
    assert problem.value.code == "media_missing"
    assert "There is haus.png." in problem.value.message
