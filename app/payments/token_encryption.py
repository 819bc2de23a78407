"""Encryption of tokens at rest, and hashes of submissions, by the server's secret key."""

import base64
import hashlib
import hmac

from cryptography.fernet import Fernet, InvalidToken


class TokenCipher:
    """Encrypts and decrypts short secrets, and hashes ids of submissions, with keys derived from the server's."""

    def __init__(self, server_key: str) -> None:
        key = hmac.new(server_key.encode(), b"tokens of platforms", hashlib.sha256).digest()
        self._fernet = Fernet(base64.urlsafe_b64encode(key))
        self._hash_key = hmac.new(server_key.encode(), b"submissions of platforms", hashlib.sha256).digest()

    def encrypt(self, secret: str) -> bytes:
        return self._fernet.encrypt(secret.encode())

    def decrypt_or_none(self, encrypted: bytes) -> str | None:
        """Return the secret; None if it was encrypted with another key."""
        try:
            return self._fernet.decrypt(encrypted).decode()
        except InvalidToken:
            return None

    def submission_hash(self, platform: str, submission: str) -> bytes:
        """Return the hash by which the reward of a submission is recognised once the ids of its person are erased.

        It is the same in all campaigns. If the operator set the key, a copy of the database is not enough to make it.
        """
        return hmac.new(self._hash_key, f"{platform}\n{submission}".encode(), hashlib.sha256).digest()
