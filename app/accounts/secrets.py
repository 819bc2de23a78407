"""Secrets of browsers and programs. Only their SHA-256 is stored: 256 random bits need no slow hash."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

MASKED_TOKEN_BYTES = 64  # a pad and a token of SHA-256


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def secret_digest(secret: str) -> bytes:
    """Return the digest that is stored and looked up instead of the secret."""
    return hashlib.sha256(secret.encode()).digest()


def csrf_token_of_session(session_secret: str) -> str:
    """Return the token that forms of this session must carry; other sites cannot read the cookie, so they cannot
    compute it.
    """
    return hmac.new(session_secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def mask_csrf_token(token: str) -> str:
    """Return a hexadecimal token under a random pad, so that the length of a compressed page reveals nothing."""
    pad = secrets.token_bytes(len(token) // 2)
    return pad.hex() + xor_bytes(pad, bytes.fromhex(token)).hex()


def unmask_csrf_token(masked_token: str) -> str:
    """Return the token under the pad; text that is no masked token is returned as it is."""
    try:
        both = bytes.fromhex(masked_token)
    except ValueError:
        return masked_token
    half = len(both) // 2
    return xor_bytes(both[:half], both[half:]).hex() if len(both) == MASKED_TOKEN_BYTES else masked_token


def xor_bytes(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def session_cookie_name(key: str) -> str:
    """Return the name of the session cookie for the installation with this key.

    Browsers share cookies between the ports of a host, so two Easels there would overwrite a common name.
    """
    return f"easel_session_{secret_digest(key).hex()[:8]}"


@dataclass(frozen=True)
class KnownBrowsers:
    """Marks of browsers. A browser gets one when someone logs in, and its next login attempt shows that it is not a
    stranger's.
    """

    key: str

    def new_signed_browser_mark(self, name: str) -> str:
        return self._signer().dumps([name, secrets.token_hex(8)])

    def browser_id_of_mark_or_none(self, mark: str, name: str) -> str | None:
        """Return the browser's id if someone has logged in there under this name, else None."""
        try:
            marked, browser = self._signer().loads(mark)
        except (BadSignature, ValueError, TypeError):
            return None
        return str(browser) if marked == name else None

    def _signer(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.key, salt="known browser")


def is_same_secret(left: str, right: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


async def load_or_create_installation_key(connection: AsyncConnection) -> str:
    """Return the key that signs tokens, created at the first call and shared by all processes through the database."""
    await connection.execute(
        text("INSERT INTO installation (secret_key) VALUES (:key) ON CONFLICT DO NOTHING"),
        {"key": secrets.token_hex(32)},
    )
    return str((await connection.execute(text("SELECT secret_key FROM installation"))).scalar_one())
