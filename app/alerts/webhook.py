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

WEBHOOK_TIMEOUT_SECONDS = 10.0  # for all of it
TIMESTAMP_HEADER, SIGNATURE_HEADER = "Easel-Timestamp", "Easel-Signature"
# All of IPv6 that is given out for the whole internet (RFC 4291), and what lies in it that leads elsewhere: protocols
# such as Teredo, documentation, and 6to4, which wraps any address of IPv4, private ones too.
PUBLIC_IPV6_NETWORK = ipaddress.IPv6Network("2000::/3")
SPECIAL_IPV6_BLOCKS = [
    ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]
RELAY_IPV4_NETWORK = ipaddress.IPv4Network("192.88.99.0/24")  # of 6to4


class DeliveryFailed(Exception):
    """A message did not arrive; why, in a line without an address or a secret."""


def webhook_signing_key(secret: str, campaign_id: int) -> str:
    """The key by which the messages of a campaign are signed, 64 hexadecimal digits."""
    return hmac.new(secret.encode(), f"webhook {campaign_id}".encode(), hashlib.sha256).hexdigest()


def webhook_signature(key: str, timestamp: int, body: bytes) -> str:
    """HMAC-SHA256 over the timestamp, a dot and the body, in hexadecimal."""
    return hmac.new(key.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def post_webhook(address: str, message: Mapping[str, Any], key: str, timestamp: int, *, allow_private: bool) -> None:
    """Send a message. timestamp: seconds since 1970. inside: whether it may go to this machine, to private networks and
    without TLS.

    Raises `Undelivered`. It blocks, for `SECONDS` and the time that a name takes to be found.
    """
    parts = urlsplit(address)
    body = json.dumps(message, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Easel",
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: f"v1={webhook_signature(key, timestamp, body)}",
    }
    try:
        status = post_and_read_status(
            parts, resolve_webhook_endpoint(parts, allow_private=allow_private), body, headers
        )
    except DeliveryFailed:
        raise
    except Exception as problem:
        raise DeliveryFailed(f"The receiver could not be reached ({type(problem).__name__}).") from problem
    if not 200 <= status < 300:
        raise DeliveryFailed(f"The receiver answered with status {status}.")


def resolve_webhook_endpoint(url_parts: SplitResult, *, allow_private: bool) -> tuple[str, int]:
    """The address of the network to connect to, and the port: looked up once, so that it cannot change after the check.

    Raises `Undelivered` for one to which nothing may go, `OSError` for none.
    """
    host = url_parts.hostname or ""
    if url_parts.scheme != "https" and not allow_private:
        raise DeliveryFailed("Messages go over TLS alone. Use an https:// address.")
    port = url_parts.port or (443 if url_parts.scheme == "https" else 80)
    addresses = [str(place[0]) for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not allow_private and not all(map(is_public_address, addresses)):
        raise DeliveryFailed(
            "The address leads to this machine or into a private network, where this server sends nothing."
        )
    return addresses[0], port


def is_public_address(address: str) -> bool:
    """Whether an address of the network is one of the whole internet; of IPv4 in IPv6, whether that of IPv4 is."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return ip in PUBLIC_IPV6_NETWORK and not any(ip in block for block in SPECIAL_IPV6_BLOCKS)
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast and ip not in RELAY_IPV4_NETWORK


def post_and_read_status(
    url_parts: SplitResult, endpoint: tuple[str, int], body: bytes, headers: Mapping[str, str]
) -> int:
    """The status of the reply; of the rest nothing is read."""
    connection = HTTPConnection(url_parts.hostname or "", url_parts.port or endpoint[1])
    sock = socket.create_connection(endpoint, timeout=WEBHOOK_TIMEOUT_SECONDS)

    def abort_connection() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = Timer(
        WEBHOOK_TIMEOUT_SECONDS, abort_connection
    )  # whoever sends a byte a second never lets a socket's own limit pass
    timer.start()
    try:
        if url_parts.scheme == "https":
            tls = ssl.create_default_context()
            sock = tls.wrap_socket(sock, server_hostname=url_parts.hostname, do_handshake_on_connect=False)
            sock.do_handshake()
        connection.sock = sock
        path = (url_parts.path or "/") + (f"?{url_parts.query}" if url_parts.query else "")
        connection.request("POST", path, body, dict(headers))
        return connection.getresponse().status
    finally:
        timer.cancel()
        sock.close()
