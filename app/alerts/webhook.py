"""One signed POST to an address that a researcher chose, and to no other: no redirect is followed, and unless the
operator allows it, nothing goes to this machine, to a private network or without TLS.
"""

import hashlib
import hmac
import ipaddress
import json
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection
from threading import Timer
from typing import Any
from urllib.parse import SplitResult, urlsplit

SECONDS = 10.0  # for all of it
TIMESTAMP, SIGNATURE = "Easel-Timestamp", "Easel-Signature"
# All of IPv6 that is given out for the whole internet (RFC 4291), and what lies in it that leads elsewhere: protocols
# such as Teredo, documentation, and 6to4, which wraps any address of IPv4, private ones too.
INTERNET = ipaddress.IPv6Network("2000::/3")
ELSEWHERE = [ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
RELAYS = ipaddress.IPv4Network("192.88.99.0/24")  # of 6to4


class Undelivered(Exception):
    """A message did not arrive; why, in a line without an address or a secret."""


def key_of(secret: str, campaign: int) -> str:
    """The key by which the messages of a campaign are signed, 64 hexadecimal digits."""
    return hmac.new(secret.encode(), f"webhook {campaign}".encode(), hashlib.sha256).hexdigest()


def signature(key: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over the timestamp, a dot and the body, in hexadecimal."""
    return hmac.new(key.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def post(address: str, message: Mapping[str, Any], key: str, timestamp: int, *, inside: bool) -> None:
    """Send a message. timestamp: seconds since 1970. inside: whether it may go to this machine, to private networks and
    without TLS.

    Raises `Undelivered`. It blocks, for `SECONDS` and the time that a name takes to be found.
    """
    parts = urlsplit(address)
    body = json.dumps(message, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Easel",
        TIMESTAMP: str(timestamp),
        SIGNATURE: f"v1={signature(key, timestamp, body)}",
    }
    try:
        status = answered(parts, place_of(parts, inside=inside), body, headers)
    except Undelivered:
        raise
    except Exception as problem:
        raise Undelivered(f"The receiver could not be reached ({type(problem).__name__}).") from problem
    if not 200 <= status < 300:
        raise Undelivered(f"The receiver answered with status {status}.")


def place_of(parts: SplitResult, *, inside: bool) -> tuple[str, int]:
    """The address of the network to connect to, and the port: looked up once, so that it cannot change after the check.

    Raises `Undelivered` for one to which nothing may go, `OSError` for none.
    """
    host = parts.hostname or ""
    if parts.scheme != "https" and not inside:
        raise Undelivered("Messages go over TLS alone. Use an https:// address.")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = [str(place[0]) for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not inside and not all(map(is_public, found)):
        raise Undelivered(
            "The address leads to this machine or into a private network, where this server sends nothing."
        )
    return found[0], port


def is_public(address: str) -> bool:
    """Whether an address of the network is one of the whole internet; of IPv4 in IPv6, whether that of IPv4 is."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return ip in INTERNET and not any(ip in block for block in ELSEWHERE)
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast and ip not in RELAYS


def answered(parts: SplitResult, place: tuple[str, int], body: bytes, headers: Mapping[str, str]) -> int:
    """The status of the reply; of the rest nothing is read."""
    connection = HTTPConnection(parts.hostname or "", parts.port or place[1])
    sock = socket.create_connection(place, timeout=SECONDS)

    def cut() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    ends = Timer(SECONDS, cut)  # whoever sends a byte a second never lets a socket's own limit pass
    ends.start()
    try:
        if parts.scheme == "https":
            tls = ssl.create_default_context()
            sock = tls.wrap_socket(sock, server_hostname=parts.hostname, do_handshake_on_connect=False)
            sock.do_handshake()
        connection.sock = sock
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, dict(headers))
        return connection.getresponse().status
    finally:
        ends.cancel()
        sock.close()
