"""`EASEL_LOG_FORMAT=json`: every line is an object, and none names a person."""

import json
import logging
import re

import httpx
import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.annotation.platforms.registry import platforms_with_pages
from app.database.embedded import running_server_url_or_none
from app.text.json_log import JsonFormatter
from app.text.redaction import RedactedRecord
from tests.database.test_embedded import wait_until
from tests.servers import PATIENT_SECONDS, easel_serving


def test_a_line_is_one_object_with_the_fields_and_the_redacted_trace():
    value = "SECRET" + "VALUE"
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int(value)
    trace = (raised.type, raised.value, raised.tb)
    record = RedactedRecord("easel", logging.ERROR, __file__, 1, "%s\nfailed", ("it",), trace)
    record.fields = {"route": "/x"}
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert "SECRETVALUE" not in line
    found = json.loads(line)
    assert (found["level"], found["event"], found["route"]) == ("error", "it\nfailed", "/x")
    assert "ValueError" in found["trace"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", found["time"])


@pytest.mark.slow
async def test_the_log_of_a_run_names_no_visitor_of_any_platform(demo_data):
    """Visitors of each platform come, answer and fail; then the database breaks under them."""
    names = ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "workerId", "assignmentId", "hitId", "participantId", "id"]
    with easel_serving(demo_data, EASEL_LOG_FORMAT="json") as server:
        (key,) = re.findall(r"/link/(\S+)", server.link)

        async def get(path: str, ids: dict[str, str]) -> httpx.Response:
            # A connection of its own: the server closes one whose request crashed.
            async with httpx.AsyncClient(base_url=server.base, verify=False, timeout=PATIENT_SECONDS) as client:
                return await client.get(path, params=ids)

        ids, others = {name: f"SECRET{name}" for name in names}, {name: f"SECRETLATE{name}" for name in names}
        entries = [platform.entry_path(key) for platform in platforms_with_pages()]
        paths = [*entries, f"/link/{key}/SECRETPATH", "/admin/campaigns/lexical-frequency"]
        replies = [await get(path, ids) for path in paths]
        engine = create_async_engine(running_server_url_or_none(demo_data) or "", poolclass=NullPool)
        async with engine.begin() as connection:
            for table in ("annotators", "hits"):
                await connection.execute(text(f"ALTER TABLE {table} ADD CHECK (false) NOT VALID"))
        await engine.dispose()
        replies += [await get(path, others) for path in entries]
        wait_until(lambda: server.rest().count('"event": "request"') == len(replies), PATIENT_SECONDS)
        lines = [json.loads(line) for line in server.rest().splitlines()]
    assert {reply.headers["x-request-id"] for reply in replies if reply.status_code != 500} <= {
        line.get("request_id") for line in lines
    }
    assert any(reply.status_code == 500 for reply in replies)
    crashes = [line for line in lines if "trace" in line]
    assert {line["level"] for line in crashes} == {"error"}
    assert {line["request_id"] for line in crashes} <= {line["request_id"] for line in lines if "route" in line}
    assert re.findall(rf"SECRET\w*|{key}|127\.0\.0\.1", json.dumps(lines)) == []
