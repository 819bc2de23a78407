"""Signed POST of an alert to the address that a researcher chose, and to no other.

It follows no redirect. Unless the operator allows it, nothing goes to this machine, to a private network or without
TLS.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import json
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx

HOW_TO_ALLOW_INSIDE = (
    "For a receiver in its own network, the person who runs this server can set EASEL_WEBHOOKS_INSIDE=1."
)
WEBHOOK_TIMEOUT_SECONDS = 10.0  # for the whole exchange
TIMESTAMP_HEADER, SIGNATURE_HEADER = "Easel-Timestamp", "Easel-Signature"
# The part of IPv6 that is assigned for the internet (RFC 4291), and the blocks within it that lead elsewhere: protocols
# such as Teredo, documentation, and 6to4, which wraps any IPv4 address, private ones too.
PUBLIC_IPV6_NETWORK = ipaddress.IPv6Network("2000::/3")
SPECIAL_IPV6_BLOCKS = [
    ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]
RELAY_IPV4_NETWORK = ipaddress.IPv4Network("192.88.99.0/24")  # relays of 6to4


class DeliveryFailed(Exception):
    """A message did not arrive. The text says why, without an address or a secret."""


@cache
def system_ssl_context() -> ssl.SSLContext:
    """Return a TLS context with the certificates that this machine trusts.

    It is cached: reading them takes tens of milliseconds.
    """
    return ssl.create_default_context()


def signing_key_of_campaign_webhook(secret: str, campaign_id: int) -> str:
    """Return the key that signs the messages of a campaign, 64 hexadecimal digits."""
    return hmac.new(secret.encode(), f"webhook {campaign_id}".encode(), hashlib.sha256).hexdigest()


def webhook_signature(key: str, timestamp: int, body: bytes) -> str:
    """Return the HMAC-SHA256 of the timestamp, a dot and the body, in hexadecimal."""
    return hmac.new(key.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


async def post_signed_webhook(
    address: str, message: Mapping[str, Any], key: str, timestamp: int, *, allow_private: bool
) -> None:
    """Send a message, within `WEBHOOK_TIMEOUT_SECONDS`. Nothing of the reply but its status is read.

    Args:
        address: The receiver's URL.
        message: The message, sent as JSON.
        key: The signing key.
        timestamp: Seconds since 1970.
        allow_private: Whether the message may go to this machine, to private networks and without TLS.

    Raises:
        DeliveryFailed: The receiver did not accept the message.

    """
    body = json.dumps(message, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Easel",
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: f"v1={webhook_signature(key, timestamp, body)}",
    }
    try:
        async with asyncio.timeout(WEBHOOK_TIMEOUT_SECONDS):
            url = httpx.URL(address)
            endpoint = url.copy_with(host=await resolve_webhook_address_or_refuse(url, allow_private=allow_private))
            # The certificate is checked against the name, and the connection goes to the address that was checked.
            async with (
                httpx.AsyncClient(
                    verify=system_ssl_context(), trust_env=False, timeout=WEBHOOK_TIMEOUT_SECONDS
                ) as client,
                client.stream(
                    "POST",
                    endpoint,
                    content=body,
                    headers={"Host": url.netloc.decode("ascii"), **headers},
                    extensions={"sni_hostname": url.raw_host.decode("ascii")},
                ) as reply,
            ):
                status = reply.status_code
    except DeliveryFailed:
        raise
    except Exception as problem:
        raise DeliveryFailed(f"The receiver could not be reached ({type(problem).__name__}).") from problem
    if not 200 <= status < 300:
        raise DeliveryFailed(f"The receiver answered with status {status}.")


async def resolve_webhook_address_or_refuse(url: httpx.URL, *, allow_private: bool) -> str:
    """Return the network address to connect to. The name is looked up once, so that it cannot change after the check.

    Raises:
        DeliveryFailed: Messages may not go to this address.
        OSError: The name has no address.

    """
    if url.scheme != "https" and not allow_private:
        raise DeliveryFailed(f"Easel sends messages only over TLS. Use an https:// address. {HOW_TO_ALLOW_INSIDE}")
    # `url.host` is decoded. Python would encode it by an older rule, so that straße.de became the name strasse.de.
    name = url.raw_host.decode("ascii")
    found = await asyncio.get_running_loop().getaddrinfo(name, url.port, type=socket.SOCK_STREAM)
    addresses = [str(place[0]) for *_, place in found]
    if not allow_private and not all(map(is_public_address, addresses)):
        raise DeliveryFailed(
            "The address points to this machine or a private network. This server does not send there. "
            f"{HOW_TO_ALLOW_INSIDE}"
        )
    return addresses[0]


def is_public_address(address: str) -> bool:
    """Return whether a network address is public on the internet. An IPv4 address within IPv6 counts as IPv4."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is None:
            return ip in PUBLIC_IPV6_NETWORK and not any(ip in block for block in SPECIAL_IPV6_BLOCKS)
        ip = ip.ipv4_mapped
    return ip.is_global and not ip.is_multicast and ip not in RELAY_IPV4_NETWORK
