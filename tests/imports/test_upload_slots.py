"""Large and packed uploads cost disk, and one of few slots, but no memory."""

import asyncio
import io
import itertools

import pytest

from app.accounts import tokens, users
from app.errors import Busy, Refusal
from app.imports import campaign_zip, item_storage, upload_slots
from app.imports.upload_slots import UploadSlots
from app.settings import Settings
from tests.annotation.hits.campaigns import NOW
from tests.campaigns.drafts import create_draft
from tests.media.files import zipped

START = b"name: Words\nquestion: How?\nitems:\n  file: words.csv\n  shown: text\n"
LARGE = b"id,text\n" + b"".join(b"%d,word %d\n" % (k, k * 7919) for k in range(200_000))


def read(table: bytes, **limits):
    content = zipped({"campaign.yaml": START, "words.csv": table})
    return campaign_zip.read_campaign_file_or_zip(io.BytesIO(content), "c.zip", Settings(**limits))


def test_a_table_in_a_zip_lies_on_disk_while_it_is_read():
    with read(LARGE).table.file as file:
        assert file.fileno() > 0  # a file of the system, not of Python's memory
        assert file.read() == LARGE


def test_a_table_that_is_packed_more_densely_than_tables_are_is_refused_before_it_is_unpacked():
    with pytest.raises(Refusal, match=r"“words.csv” in the zip is more than 200 times as large") as refusal:
        read(b"id,text\n" + b"\n" * 2**24)
    assert (refusal.value.status, refusal.value.code) == (413, "zip_too_dense")


def test_a_small_table_may_be_packed_as_densely_as_it_likes():
    with read(b"id,text\n1,a\n" + b"\n" * 2**20).table.file as file:
        assert len(file.read()) > 2**20


def test_a_table_in_a_zip_is_no_larger_than_a_table_alone():
    with pytest.raises(Refusal, match="has 4 MB; the maximum is 1 MB") as refusal:
        read(LARGE, max_upload_mb=1)
    assert refusal.value.code == "file_too_large"


def test_long_rows_are_stored_in_smaller_batches():
    rows = [item_storage.ImportedItem(str(k), "text", {"note": "x" * 90_000}, None) for k in range(100)]
    left = iter(rows)
    first = item_storage.take_item_copy_lines_up_to_limit(1, left, itertools.count())
    assert 0 < len(first) < 30
    assert len(first) + len([*left]) == 100


async def test_large_and_packed_files_wait_for_a_slot(subtests):
    for content, waits in (
        (b"id,text\n1,a\n", False),
        (b"", False),
        (b"PK\x03\x04 a zip", True),
        (b"\x1f\x8b gzip", True),
        (b"x" * (upload_slots.MAX_SMALL_UPLOAD_BYTES + 1), True),
    ):
        with subtests.test(content=content, waits=waits):
            slots, file = UploadSlots(1, wait_seconds=0.01), io.BytesIO(content)
            async with slots.holding_slot_if_file_is_large(io.BytesIO(b"PK")):
                if waits:
                    with pytest.raises(Busy) as refusal:
                        await slots.holding_slot_if_file_is_large(file).__aenter__()
                    assert (refusal.value.status, refusal.value.code) == (503, "uploads_busy")
                else:
                    async with slots.holding_slot_if_file_is_large(file):
                        pass
            async with slots.holding_slot_if_file_is_large(file):  # free again
                assert file.tell() == 0


async def test_no_more_are_read_at_once_than_there_are_slots():
    slots, reading, most = UploadSlots(2, wait_seconds=60), 0, 0

    async def upload():
        nonlocal reading, most
        async with slots.holding_slot_if_file_is_large(io.BytesIO(b"PK")):
            reading += 1
            most = max(most, reading)
            await asyncio.sleep(0)
            reading -= 1

    await asyncio.gather(*(upload() for _ in range(9)))
    assert most == 2


async def test_who_is_cancelled_while_waiting_takes_no_slot():
    slots = UploadSlots(1, wait_seconds=60)
    async with slots.holding_slot_if_file_is_large(io.BytesIO(b"PK")):
        waiting = asyncio.create_task(slots.holding_slot_if_file_is_large(io.BytesIO(b"PK")).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
    async with slots.holding_slot_if_file_is_large(io.BytesIO(b"PK")):
        pass


@pytest.fixture
async def bearer(app):
    async with app.state.database.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        token = await tokens.issue_token_or_refuse(connection, admin.id, "program", now=NOW)
    return {"authorization": f"Bearer {token}"}


def requests_with(file, campaign):
    """Every address that takes a file, on pages and of the API."""
    pages, api = f"/admin/campaigns/{campaign.slug}", f"/api/v1/campaigns/{campaign.slug}"
    files = {"file": ("words.zip", file)}
    return {
        "/admin/campaigns/new/file": {"files": files},
        "/api/v1/campaigns/files": {"content": file},
        f"{pages}/items/preview": {"files": files},
        f"{pages}/items": {"files": files},
        f"{api}/items": {"content": file},
        f"{pages}/responses": {"files": files},
        f"{api}/responses": {"content": file},
    }


async def test_every_address_that_takes_a_file_says_when_the_server_is_busy_with_others(app, researcher, bearer):
    campaign = await create_draft(app.state.database)
    app.state.upload_slots = UploadSlots(1, wait_seconds=0.01)
    async with app.state.upload_slots.holding_slot_if_file_is_large(io.BytesIO(b"PK")):
        for address, sent in requests_with(zipped({"campaign.yaml": START}), campaign).items():
            reply = await researcher.post(address, **sent, headers=bearer if "/api/" in address else {})
            assert reply.status_code == 503, address
            assert "The server is reading other large files. Nothing was stored." in reply.text
            if "/api/" in address:
                assert reply.json()["error"]["code"] == "uploads_busy"
                assert reply.headers["retry-after"] == "30"
