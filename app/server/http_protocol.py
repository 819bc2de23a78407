"""uvicorn's HTTP protocol with the limits of a proxy: on sizes, on pipelined requests, and on silent clients."""

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

MAX_REQUEST_HEADERS = 100
MAX_HEAD_BYTES = 32_768  # request line and headers
MAX_PIPELINED_REQUESTS = 16  # sent on a connection before the reply to the first; one more closes it
REQUEST_SILENCE_SECONDS = 20  # to send a request; extended by one second for every MIN_BYTES_PER_SECOND received
MIN_BYTES_PER_SECOND = 500
MAX_UNREAD_REPLY_SECONDS = 300  # without any progress of a reply; the kernel buffers some of it for a slow line
TIMEOUT_CHECK_SECONDS = 5  # between two checks of a connection
REFUSAL_READ_SECONDS = 1  # for the client to read a refusal
# While the server stops: for a client to send its first request, or the next one after its last reply.
FIRST_REQUEST_SECONDS, NEXT_REQUEST_SECONDS = 3, 0.5

HEAD_TOO_LARGE_MESSAGE = b"The headers of this request are too large."
HEAD_TOO_LARGE_RESPONSE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(HEAD_TOO_LARGE_MESSAGE), HEAD_TOO_LARGE_MESSAGE)
)


class RequestTooLarge(Exception):
    """Raised to end the parsing of a request that is too large; the parser wraps it in its own error."""


class RequestWithoutOneHost(Exception):
    """Raised to end the parsing of a request that names no host or several."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection. Requests are counted while they are parsed, and a timer checks for silence every few seconds."""

    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # uvicorn omits that it is None at first

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.headers_seen = 0
        self.hosts_seen = 0
        self.head_bytes = 0
        self.bytes_outside_bodies = 0  # since the last piece of a body: heads, trailers, the sizes of chunks
        self.is_refused = False
        self.is_ending = False
        self.received = 0
        self.since = self.loop.time()  # not later than the beginning of the client's turn
        self.unread = 0
        self.unread_since = self.since
        self.timeout_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self.timeout_timer = self.loop.call_later(TIMEOUT_CHECK_SECONDS, self.close_if_client_is_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timeout_timer is not None:
            self.timeout_timer.cancel()
        super().connection_lost(exc)

    # Sizes

    def data_received(self, data: bytes) -> None:
        if self.is_refused:
            return
        self.received += len(data)
        self.bytes_outside_bodies += len(data)
        super().data_received(data)
        # The parser calls nothing back for an unfinished line, and a client may never finish it.
        if self.bytes_outside_bodies > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.refuse_if_possible_and_close()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
            raise RequestTooLarge
        self.headers_seen = self.hosts_seen = self.head_bytes = self.received = 0
        self.since = self.loop.time()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self.add_head_bytes_or_refuse(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers_seen += 1
        self.hosts_seen += name.lower() == b"host"
        self.add_head_bytes_or_refuse(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Refuse a request that names no host, or several, as HTTP/1.1 requires (RFC 9112, section 3.2)."""
        if self.hosts_seen > 1 or (self.hosts_seen == 0 and self.parser.get_http_version() == "1.1"):
            raise RequestWithoutOneHost
        super().on_headers_complete()
        if self.is_ending and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self.bytes_outside_bodies = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.bytes_outside_bodies = 0
        super().on_message_complete()

    def add_head_bytes_or_refuse(self, byte_count: int) -> None:
        self.head_bytes += byte_count
        if self.head_bytes > MAX_HEAD_BYTES or self.headers_seen > MAX_REQUEST_HEADERS:
            raise RequestTooLarge

    def send_400_response(self, msg: str) -> None:
        if self.head_bytes > MAX_HEAD_BYTES or self.headers_seen > MAX_REQUEST_HEADERS or self.is_earlier_reply_due():
            self.refuse_if_possible_and_close()
        else:
            super().send_400_response(msg)

    def is_earlier_reply_due(self) -> bool:
        """Return whether the client would read a refusal as the reply to an earlier request, or as a part of it."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        return bool(self.pipeline) or not self.cycle.more_body or self.cycle.response_started

    def refuse_if_possible_and_close(self) -> None:
        """Refuse a request that is too large and close the connection afterwards; only close it if an earlier reply is
        due.

        If an earlier request has no reply yet, close without a refusal: replies come in order, and none can say that it
        is for a later request. The client then knows that it may send requests without a reply again.
        """
        if self.is_refused:
            return
        self.is_refused = True
        if self.is_earlier_reply_due():
            self.transport.close()
            return
        self.transport.write(HEAD_TOO_LARGE_RESPONSE)
        self.transport.write_eof()
        self.loop.call_later(REFUSAL_READ_SECONDS, self.transport.close)

    # The end

    def shutdown(self) -> None:
        """Close the connection after the reply that is due.

        If none is due, close it after the next request or a moment: the client may just be sending one, and would find
        the connection reset.
        """
        self.is_ending = True
        if self.is_idle:
            seconds = FIRST_REQUEST_SECONDS if self.cycle is None else NEXT_REQUEST_SECONDS
            self.loop.call_later(seconds, self.close_if_idle)
        else:
            super().shutdown()

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def close_if_idle(self) -> None:
        if self.is_idle:
            self.transport.close()

    # Times

    def close_if_client_is_silent(self) -> None:
        """Close the connection if its client has been silent for too long."""
        now = self.loop.time()
        self.timeout_timer = self.loop.call_later(TIMEOUT_CHECK_SECONDS, self.close_if_client_is_silent)
        unread_bytes = self.transport.get_write_buffer_size()
        if unread_bytes == 0 or unread_bytes != self.unread:
            self.unread, self.unread_since = unread_bytes, now
        if not self.is_clients_turn():
            self.since, self.received = now, 0
        if now - self.since > REQUEST_SILENCE_SECONDS + self.received / MIN_BYTES_PER_SECOND:
            self.transport.close()
        if now - self.unread_since > MAX_UNREAD_REPLY_SECONDS:
            self.transport.abort()

    def is_clients_turn(self) -> bool:
        """Return whether the server waits for a request, or the rest of one, and nothing here delays it."""
        if self.cycle is None or self.cycle.response_complete:
            return True
        return self.cycle.more_body and not (self.flow.read_paused or self.cycle.waiting_for_100_continue)
