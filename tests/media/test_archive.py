"""Zips of files: what is good is stored piece by piece; of what is not, nothing is."""

import io
import stat
import struct
import tracemalloc
import zipfile

import pytest

from app.errors import Refusal
from app.media import media_zip
from app.media.content_types import can_be_shown_as_media_kind, detect_content_type_or_none
from app.media.media_zip import MediaZip, iterate_unpacked_media_pieces_or_refuse
from tests.media.files import SVG, packed, png, wav, zipped

PAGE = b"<!doctype html><script>alert(1)</script>"


def unpack(found, wanted=("a.png",), have=(), size=0):
    files: dict[str, bytes] = {}
    for piece in iterate_unpacked_media_pieces_or_refuse(found, wanted, have, size):
        files[piece.name] = files.get(piece.name, b"") + piece.data
    return files


def refused(found, **how):
    with pytest.raises(Refusal) as problem:
        unpack(found, **how)
    assert "Nothing was imported." in problem.value.message
    return problem.value.code


def odd(name="a.png", data=None, **attributes):
    """Return a zip with one file whose entry has these attributes."""
    info = zipfile.ZipInfo(name)
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        opened.writestr(info, data or png())
    return packed(made)


def test_a_file_comes_out_as_it_went_in_whatever_its_size(monkeypatch):
    monkeypatch.setattr(media_zip, "MEDIA_PIECE_BYTES", 100)
    files = {"a.png": png(), "b.wav": wav()}
    assert unpack(packed(files), wanted=files) == files


def test_a_folder_that_was_packed_whole_does_not_count_and_what_systems_leave_neither():
    files = {"photos/": b"", "photos/a.png": png(), "__MACOSX/photos/._a.png": b"x", "photos/.DS_Store": b"x"}
    assert unpack(packed(files)) == {"a.png": png()}
    assert unpack(packed(files), wanted=["photos/a.png"]) == {"photos/a.png": png()}


ELSEWHERE = ["../a.png", "x/../../a.png", "/etc/a.png", "C:/a.png", "..\\a.png", "a\u202egnp.png", "./a.png"]


def test_a_path_that_leads_elsewhere_is_refused(subtests):
    for name in ELSEWHERE:
        with subtests.test(name=name):
            assert refused(odd(name), wanted=[name, "a.png"]) == "media_name_unsafe"


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_a_link_or_a_device_is_refused(kind):
    assert refused(odd(external_attr=(kind | 0o777) << 16, create_system=3)) == "media_name_unsafe"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_there_twice_is_refused():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for _ in range(2):
            opened.writestr("a.png", png())
    assert refused(packed(made)) == "media_twice"
    assert refused(packed({"a.png": png()}), have=["a.png"]) == "media_twice"


def test_a_file_that_nobody_names_is_refused():
    assert refused(packed({"a.png": png(), "b.png": png()})) == "media_unnamed"


def test_what_is_no_media_is_refused_whatever_it_is_called(subtests):
    for data in (SVG, PAGE, b"", b"%PDF-1.7", b"GIF", b"RIFF1234AVI ", b"\xff\xd9", b"plain words"):
        with subtests.test(data=data):
            assert refused(packed({"a.png": data})) == "media_type_unknown"


def test_a_bomb_is_refused_before_it_is_unpacked():
    assert refused(packed({"a.png": bytes(64 * 2**20)})) == "media_file_too_large"
    many = {f"{k}.png": png() + bytes(3 * 2**20) for k in range(6)}
    assert refused(packed(many), wanted=many) == "media_too_large"


def test_what_the_campaign_has_already_counts():
    assert refused(packed({"a.png": png() + bytes(2**20)}), size=16 * 2**20 - 1000) == "media_too_large"


def test_a_size_that_is_a_lie_unpacks_no_more_than_it_says_and_is_refused():
    data = bytearray(zipped({"a.png": png() + bytes(2**20)}))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 100)
    assert refused(packed(io.BytesIO(bytes(data)))) == "zip_unreadable"


def test_a_file_that_is_shorter_than_the_zip_says_is_refused():
    data = bytearray(zipped({"a.png": png()}))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 1000)
    assert refused(packed(io.BytesIO(bytes(data)))) == "zip_unreadable"


def test_what_is_no_zip_is_refused(subtests):
    for data in (b"", b"no zip at all", b"PK\x05\x06", png(), b"PK\x05\x06" + bytes(18), b"PK\x05\x06" + b"\1\0" * 9):
        with subtests.test(data=data):
            if data == b"PK\x05\x06" + bytes(18):
                assert unpack(packed(io.BytesIO(data))) == {}
            else:
                assert refused(packed(io.BytesIO(data))) == "zip_unreadable"


def test_a_zip_that_is_cut_off_or_changed_is_refused():
    whole = zipped({"a.png": png(90, 90)})
    assert refused(packed(io.BytesIO(whole[:-30]))) == "zip_unreadable"
    assert refused(packed(io.BytesIO(whole[:60] + b"\0\0\0" + whole[63:]))) == "zip_unreadable"


def test_more_files_than_anyone_packs_are_refused_without_reading_their_names():
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 60_000, 60_000, 3_000_000, 0, 0)
    assert refused(packed(io.BytesIO(bytes(3_000_000) + end))) == "zip_too_many_files"
    wide = b"PK\x06\x07" + bytes(16) + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, 100, 0, 0)
    assert refused(packed(io.BytesIO(bytes(100) + wide))) == "zip_too_many_files"


def test_a_zip_with_a_password_or_a_rare_packing_is_refused():
    encrypted = bytearray(zipped({"a.png": png()}))
    at = encrypted.rindex(b"PK\x01\x02")
    encrypted[at + 8] |= 1
    assert refused(packed(io.BytesIO(bytes(encrypted)))) == "zip_encrypted"
    assert refused(odd(compress_type=zipfile.ZIP_LZMA)) == "zip_unreadable"


def test_a_file_is_what_its_bytes_say(subtests):
    for start, type_ in (
        (png(), "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x1cftypavif", "image/avif"),
        (wav(), "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90\x44", "audio/mpeg"),
        (b"fLaC", "audio/flac"),
        (b"OggS" + bytes(24) + b"OpusHead", "audio/ogg"),
        (b"OggS" + bytes(24) + b"\x80theora", "video/ogg"),
        (b"\0\0\0\x1cftypM4A ", "audio/mp4"),
        (b"\0\0\0\x1cftypisom", "video/mp4"),
        (b"\x1aE\xdf\xa3", "video/webm"),
        (b"\0\0\0\x1cftypheic", None),
        (b"\xff\xff\xff\xff", None),
        (b"\xff\xfb", None),
    ):
        with subtests.test(start=start, type_=type_):
            assert detect_content_type_or_none(start) == type_


def test_a_container_of_video_can_be_heard_but_sound_cannot_be_seen():
    assert can_be_shown_as_media_kind("audio", "video/webm")
    assert not can_be_shown_as_media_kind("video", "audio/wav")
    assert not can_be_shown_as_media_kind("image", "video/webm")


def test_memory_stays_flat_for_a_large_zip(tmp_path):
    path = tmp_path / "large.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as opened:
        for k in range(25):
            opened.writestr(f"{k}.png", png() + bytes(8 * 2**20))
    tracemalloc.start()
    with path.open("rb") as file:
        count = sum(
            len(piece.data)
            for piece in iterate_unpacked_media_pieces_or_refuse(
                MediaZip(file, 16, 1024), [f"{k}.png" for k in range(25)], (), 0
            )
        )
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count > 200 * 2**20
    assert most < 8 * 2**20
