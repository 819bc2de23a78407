"""A platform on loopback whose server gives credit by a call, and fails as it is told."""

import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from tests.alerts.receivers import serving

# What becomes of a call: credit and a reply; a status, with credit before or without; credit or none, and no reply.
Behaviour = Literal[
    "ok", "404", "302", "429", "500", "credit then 500", "drop", "credit then drop", "hang", "credit then hang"
]


@dataclass
class FakePlatform:
    """Credits by person, and all calls as (method, path, parameters, headers).

    Attributes:
        behaviours: What becomes of the next calls; then "ok".
        people_whose_calls_hang: Calls for these people hang, whatever the next behaviour is.
        bodies: Bodies of the calls by POST.
        reply: Text of the replies.
        counts_repeated_call_once: Whether a repeated call gives no further credit.

    """

    address: str = ""
    behaviours: list[Behaviour] = field(default_factory=list)
    people_whose_calls_hang: frozenset[str] = frozenset()
    counts_repeated_call_once: bool = False
    credits: Counter[str] = field(default_factory=Counter)
    calls: list[tuple[str, str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    reply: str = ""
    may_end: threading.Event = field(default_factory=threading.Event)

    def give_credit(self, person: str) -> None:
        if not (self.counts_repeated_call_once and self.credits[person]):
            self.credits[person] += 1


@contextmanager
def fake_platform() -> Iterator[FakePlatform]:
    fake = FakePlatform()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            fake.bodies.append(body)
            self.answer(dict(parse_qsl(body, keep_blank_values=True)))

        def answer(self, parameters: dict[str, str]) -> None:
            fake.calls.append((self.command, self.path, parameters, dict(self.headers)))
            behaviour = fake.behaviours.pop(0) if fake.behaviours else "ok"
            if parameters.get("who") in fake.people_whose_calls_hang:
                behaviour = "hang"
            if behaviour == "ok" or behaviour.startswith("credit"):
                fake.give_credit(parameters.get("who", ""))
            if behaviour.endswith("hang"):
                fake.may_end.wait(5)
            if behaviour.endswith(("hang", "drop")):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                return
            status = 200 if behaviour == "ok" else int(behaviour.removeprefix("credit then "))
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "600")
            self.send_header("Content-Length", str(len(fake.reply)))
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):  # the client may have read enough
                self.wfile.write(fake.reply.encode())

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        fake.address = f"http://127.0.0.1:{port}/credit?token=s3cr3t&who={{id}}"
        try:
            yield fake
        finally:
            fake.may_end.set()
