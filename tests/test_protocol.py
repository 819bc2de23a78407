"""The costs of one connection are bounded: spoken over real sockets, without a database."""

import asyncio
import resource
from contextlib import asynccontextmanager

import pytest
import uvicorn
from uvicorn.server import ServerState

from app.server import http_protocol
from app.server import serve as serve_module
from app.server.http_protocol import (
    MAX_HEAD_BYTES,
    MAX_PIPELINED_REQUESTS,
    MAX_REQUEST_HEADERS,
    LimitedHttpProtocol,
)

GET = b"GET / HTTP/1.1\r\nhost: easel.test\r\n"
PATIENCE = 30  # only a test that fails waits so long


async def echo(scope, receive, send):
    """Reply with the size of the body, once it is complete."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = b"%d bytes" % size
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
    )
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def connected(app=echo, connections=1):
    """Run a server, and yield (reader, writer) for each of some connections to it."""
    configuration = uvicorn.Config(app, http=LimitedHttpProtocol, lifespan="off", log_level="critical")
    configuration.load()
    state = ServerState()
    listening = await asyncio.get_running_loop().create_server(
        lambda: LimitedHttpProtocol(configuration, state, {}), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]
    try:
        yield pairs if connections > 1 else pairs[0]
    finally:
        for _, writer in pairs:
            writer.transport.abort()
        listening.close()


async def reply_to(*pieces, app=echo):
    """Send pieces and return all that comes back, until the server closes the connection."""
    async with connected(app) as (reader, writer), asyncio.timeout(PATIENCE):
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(http_protocol, "REQUEST_SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(http_protocol, "TIMEOUT_CHECK_SECONDS", 0.05)


async def test_a_usual_request_is_answered():
    closing = GET + b"cookie: " + b"c" * 4000 + b"\r\nconnection: close\r\n\r\n"
    reply = await reply_to(closing)
    assert reply.startswith(b"HTTP/1.1 200 OK")
    assert reply.endswith(b"0 bytes")


async def test_a_large_body_is_not_a_large_head():
    body = b"x" * 40 * MAX_HEAD_BYTES
    head = b"POST / HTTP/1.1\r\nhost: easel.test\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    assert (await reply_to(head, body)).endswith(b"%d bytes" % len(body))


MANY = b"".join(b"h%d: v\r\n" % k for k in range(MAX_REQUEST_HEADERS + 1))
CHUNKED = b"POST / HTTP/1.1\r\nhost: easel.test\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        GET + MANY + b"\r\n",
        GET + b"h: " + b"v" * MAX_HEAD_BYTES + b"\r\n\r\n",
        GET + b"h: " + b"v" * MAX_HEAD_BYTES,  # without an end
        GET + b"h" * MAX_HEAD_BYTES,
        b"GET /" + b"u" * MAX_HEAD_BYTES,
        b"GET /" + b"u" * MAX_HEAD_BYTES + b" HTTP/1.1\r\n\r\n",
        CHUNKED + b"1\r\nx\r\n0\r\n" + MANY + b"\r\n",  # trailers
        CHUNKED + b"1;" + b"e" * MAX_HEAD_BYTES,  # the extension of a chunk
    ],
)
async def test_too_much_of_a_head_is_refused_and_the_connection_closed(request_):
    assert b"HTTP/1.1 431 " in await reply_to(request_)


async def test_a_head_that_comes_in_many_pieces_is_counted_as_one():
    pieces = [GET, *[b"h: " + b"v" * 1000 + b"\r\n" for _ in range(40)]]
    assert b"HTTP/1.1 431 " in await reply_to(*pieces)


async def test_requests_on_one_connection_are_counted_each():
    one = GET + b"h: " + b"v" * (MAX_HEAD_BYTES // 2) + b"\r\n"
    async with connected() as (reader, writer), asyncio.timeout(PATIENCE):
        for _ in range(5):
            writer.write(one + b"\r\n")
            assert b"200 OK" in await reader.readuntil(b"0 bytes")


@pytest.mark.parametrize(
    "more",
    [
        pytest.param((GET + b"\r\n") * (MAX_PIPELINED_REQUESTS + 1), id="too many requests"),
        pytest.param(b"nonsense\r\n\r\n", id="no request"),
        pytest.param(GET + MANY + b"\r\n", id="too many headers"),
        pytest.param(GET + b"h: " + b"v" * MAX_HEAD_BYTES, id="a head without an end"),
        pytest.param(CHUNKED + b"no size\r\n", id="a broken body"),
    ],
)
async def test_a_refusal_is_never_taken_for_the_reply_to_an_earlier_request(more):
    """Replies come in order, so while one is under way the connection is closed without another."""

    async def half(_scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass

    async with connected(half) as (reader, writer), asyncio.timeout(PATIENCE):
        writer.write(GET + b"\r\n")
        await reader.readuntil(b"half")
        writer.write(more)
        assert await reader.read() == b""


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"\r\n",
        b"GET / HT",
        GET,
        b"POST / HTTP/1.1\r\nhost: easel.test\r\ncontent-length: 10\r\n\r\n12345",
        CHUNKED + b"1\r\nx\r\n",
    ],
)
@pytest.mark.usefixtures("impatient")
async def test_whoever_does_not_finish_a_request_is_not_waited_for(begun):
    assert await reply_to(begun) == b""


@pytest.mark.usefixtures("impatient")
async def test_a_request_that_trickles_in_is_not_waited_for():
    async with connected() as (reader, writer), asyncio.timeout(PATIENCE):
        writer.write(GET)
        while not reader.at_eof():
            writer.write(b"h: v\r\n")
            await asyncio.sleep(0.05)
            if writer.transport.is_closing():
                break


async def test_a_slow_line_has_the_time_that_its_upload_takes(monkeypatch, impatient):
    monkeypatch.setattr(http_protocol, "MIN_BYTES_PER_SECOND", 100)
    async with connected() as (reader, writer), asyncio.timeout(PATIENCE):
        writer.write(b"POST / HTTP/1.1\r\nhost: easel.test\r\ncontent-length: 500\r\n\r\n")
        for _ in range(10):
            writer.write(b"x" * 50)
            await asyncio.sleep(0.05)
        assert b"500 bytes" in await reader.readuntil(b"500 bytes")


@pytest.mark.usefixtures("impatient")
async def test_whoever_waits_for_us_is_not_sent_away():
    answer = asyncio.Event()

    async def slow(scope, receive, send):
        await receive()
        await answer.wait()
        await echo(scope, lambda: asyncio.sleep(0, {"type": "http.request", "body": b"", "more_body": False}), send)

    async with connected(slow) as (reader, writer), asyncio.timeout(PATIENCE):
        writer.write(GET + b"\r\n")
        await asyncio.sleep(0.6)
        assert not reader.at_eof()
        answer.set()
        assert b"0 bytes" in await reader.readuntil(b"0 bytes")


async def test_whoever_takes_nothing_of_a_reply_is_not_waited_for(monkeypatch, impatient):
    monkeypatch.setattr(http_protocol, "MAX_UNREAD_REPLY_SECONDS", 0.2)
    ended = asyncio.Event()

    async def endless(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
        ended.set()

    async with connected(endless) as (reader, writer), asyncio.timeout(PATIENCE):
        writer.write(GET + b"\r\n")
        reader._transport.pause_reading()
        await ended.wait()  # what is sent after the end goes nowhere


async def test_many_silent_connections_stop_nobody():
    async with connected(connections=500) as pairs, asyncio.timeout(PATIENCE):
        reader, writer = pairs[-1]
        writer.write(GET + b"\r\n")
        assert b"200 OK" in await reader.readuntil(b"0 bytes")


def test_the_server_may_open_as_many_files_as_the_system_allows(monkeypatch):
    asked = []
    for limits, wanted in (
        [(256, 4096), (4096, 4096)],
        [(1024, resource.RLIM_INFINITY), (serve_module.WANTED_OPEN_FILES, resource.RLIM_INFINITY)],
        [(resource.RLIM_INFINITY, resource.RLIM_INFINITY), None],
        [(100_000, 200_000), None],
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
        asked.clear()
        serve_module.raise_limit_of_open_files()
        assert asked == ([wanted] if wanted else [])


async def test_a_request_names_one_host(subtests):
    for head, status in (
        (b"GET / HTTP/1.1\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nx-host: easel.test\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nhost: easel.test\r\nHost: another\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHOST: easel.test\r\nconnection: close\r\n", b"200"),
        (b"GET / HTTP/1.0\r\n", b"200"),
    ):
        with subtests.test(head=head, status=status):
            assert (await reply_to(head + b"\r\n")).split()[1] == status
