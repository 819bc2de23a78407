"""Encryption of tokens at rest, by the server's secret key."""

import base64
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken


class TokenCipher:
    """Encrypts and decrypts short secrets with a key derived from the server's."""

    def __init__(self, server_key: str) -> None:
        key = hmac.new(server_key.encode(), b"tokens of platforms", hashlib.sha256).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(key))

    def encrypt(self, secret: str) -> bytes:
        return self._fernet.encrypt(secret.encode())

    def decrypt_or_none(self, encrypted: bytes) -> str | None:
        """Return the secret; None if it was encrypted with another key."""
        try:
            return self._fernet.decrypt(encrypted).decode()
        except InvalidToken:
            return None
