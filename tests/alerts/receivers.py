"""A receiver of webhooks and a mail server on loopback, which note what they get."""

import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Got:
    """Received webhooks as (headers, body), mails as lines. `replies` are statuses to answer with, then 204."""

    address: str = ""
    messages: list[Any] = field(default_factory=list)
    replies: list[int] = field(default_factory=list)


@contextmanager
def webhook_receiver(*replies: int, certificate: Path | None = None) -> Iterator[Got]:
    """certificate: of a receiver that speaks TLS, with its key."""
    got = Got(replies=[*replies])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.messages.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(got.replies.pop(0) if got.replies else 204)
            self.send_header("Location", f"{got.address}/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    with serving(server) as port:
        got.address = f"http://127.0.0.1:{port}/hook?of=us"
        yield got


@contextmanager
def mail_server(refused: str = "nobody") -> Iterator[Got]:
    """refused: a receiver, in capitals, whom it does not know."""
    got = Got()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline().decode().strip().upper():
                if line == "DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
                    got.messages.append("\n".join(lines))
                if refused in line:
                    self.wfile.write(b"550 unknown\r\n")
                    continue
                self.wfile.write(b"221 bye\r\n" if line == "QUIT" else b"250 good\r\n")

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        got.address = f"smtp://127.0.0.1:{port}"
        yield got


@contextmanager
def serving(server: Any) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
