"""Files over HTTP: whole, in ranges, and safe to open."""

import re

from app.media import media_store
from app.media.media_zip import MEDIA_PIECE_BYTES
from app.media.pages import parse_range_header_or_none
from tests.annotation.hits.campaigns import fetch_rows
from tests.media.files import png, with_files

LARGE = png() + bytes(range(256)) * (2 * MEDIA_PIECE_BYTES // 256)


async def addresses(engine):
    found = await fetch_rows(engine, "SELECT name, address FROM media ORDER BY number")
    return {name: f"/media/{address.hex}" for name, address in found}


async def test_a_file_comes_whole_with_its_own_type_and_can_do_nothing(engine, client):
    await with_files(engine, {"a.png": LARGE, "b.jpg": png()}, content="image")
    found = await addresses(engine)
    reply = await client.get(found["a.png"])
    assert (reply.status_code, reply.content) == (200, LARGE)
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "immutable" in reply.headers["cache-control"]
    assert reply.headers["content-length"] == str(len(LARGE))
    other = await client.get(found["b.jpg"])
    assert other.headers["content-type"] == "image/png"  # whatever its name says


async def test_of_many_files_in_many_pieces_not_one_is_lost(engine, client, monkeypatch):
    monkeypatch.setattr(media_store, "PIECES_PER_BATCH", 2)
    files = {f"{k}.png": LARGE[: (k + 1) * 2**17] for k in range(5)}
    await with_files(engine, files, content="image")
    for name, address in (await addresses(engine)).items():
        assert (await client.get(address)).content == files[name]


async def test_ranges(engine, client):
    await with_files(engine, {"a.png": LARGE, "b.png": png()}, content="image")
    address = (await addresses(engine))["a.png"]
    size = len(LARGE)
    for asked, start, stop in [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        (f"bytes={MEDIA_PIECE_BYTES - 2}-{MEDIA_PIECE_BYTES + 1}", MEDIA_PIECE_BYTES - 2, MEDIA_PIECE_BYTES + 2),
        (f"bytes={size - 5}-", size - 5, size),
        ("bytes=-7", size - 7, size),
        (f"bytes=5-{10 * size}", 5, size),
        (f"bytes=-{10 * size}", 0, size),
    ]:
        reply = await client.get(address, headers={"range": asked})
        assert (reply.status_code, reply.content) == (206, LARGE[start:stop])
        assert reply.headers["content-range"] == f"bytes {start}-{stop - 1}/{size}"
        assert reply.headers["content-length"] == str(stop - start)
    for asked in (f"bytes={size}-", "bytes=-0"):
        reply = await client.get(address, headers={"range": asked})
        assert (reply.status_code, reply.headers["content-range"]) == (416, f"bytes */{size}")
    for asked in ("bytes=5-2", "bytes=-", "bytes=a-b", "lines=0-1", "bytes=0-1,4-5"):
        assert (await client.get(address, headers={"range": asked})).status_code == 200


async def test_a_range_holds_only_for_the_file_that_it_was_asked_of(engine, client):
    await with_files(engine, {"a.png": png(), "b.png": png()}, content="image")
    address = (await addresses(engine))["a.png"]
    tag = (await client.get(address)).headers["etag"]
    same = await client.get(address, headers={"range": "bytes=0-3", "if-range": tag})
    other = await client.get(address, headers={"range": "bytes=0-3", "if-range": '"other"'})
    assert (same.status_code, other.status_code) == (206, 200)
    assert (await client.get(address, headers={"if-none-match": tag})).status_code == 304
    head = await client.head(address)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(png())))


async def test_an_address_that_is_guessed_leads_nowhere(engine, client, subtests):
    for address in ("0" * 32, "a.png", "0", "../media", "%00", "1" * 31 + "²"):
        with subtests.test(address=address):
            await with_files(engine, {"a.png": png(), "b.png": png()}, content="image")
            reply = await client.get(f"/media/{address}")
            assert reply.status_code == 404
            assert reply.headers["cache-control"] == "no-store"


async def test_every_file_of_every_campaign_has_an_address_of_its_own(engine, client):
    for _ in range(2):
        await with_files(engine, {"a.png": png(), "b.png": png()}, content="image")
    found = [address for (address,) in await fetch_rows(engine, "SELECT address::text FROM media")]
    assert len(set(found)) == 4
    assert all(re.fullmatch(r"[0-9a-f-]{14}4[0-9a-f-]{21}", address) for address in found)


def test_no_range_reaches_beyond_a_file():
    assert parse_range_header_or_none("bytes=0-999999999999999999", 3) == range(3)
    assert parse_range_header_or_none("bytes=9999999999999999999-", 3) is None
