"""OpenID Connect protocol: requests to a provider, and verification of its replies. No SQL, no pages.

Authorization code flow with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636). A signed cookie with state, nonce
and code verifier binds a login to the browser that began it.
"""

import asyncio
import base64
import hashlib
import json
import secrets
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeGuard
from urllib.parse import urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from pydantic import BaseModel, ValidationError

from app.errors import BadGateway, Unauthenticated
from app.text.email_address import is_email_address

# Asymmetric signatures only: never `none` or a shared secret, which others could produce.
SIGNATURE_ALGORITHMS = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
]
OPENID_SCOPE = "openid email"
PROVIDER_TIMEOUT_SECONDS = 10.0  # for each request, from its beginning to the last byte of the reply
PROVIDER_REST_SECONDS = 5.0  # pause before an unreachable provider is asked for its addresses and keys again
MAX_REPLY_BYTES = 256 * 1024
PROVIDER_CACHE_SECONDS = 3600.0  # how long a provider's addresses and keys are kept
MAX_SUBJECT_CHARACTERS = 255  # OpenID Connect Core 1.0, section 2
CLOCK_LEEWAY_SECONDS = 60


class ProviderAddresses(BaseModel):
    """Addresses of a provider from its discovery document, and how it accepts the client's secret."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: list[str] = ["client_secret_basic"]


class LoginState(BaseModel):
    """A login that was begun, as the browser keeps it.

    Attributes:
        state: Random state parameter.
        nonce: Random value that the ID token must repeat.
        verifier: PKCE code verifier.
        to: The page to go on to.
        user: Id of the researcher who connects the identity to their account; None for a login.

    """

    state: str
    nonce: str
    verifier: str
    to: str
    user: int | None = None

    @classmethod
    def with_new_secrets(cls, target_path: str, user_id: int | None = None) -> "LoginState":
        return cls(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            to=target_path,
            user=user_id,
        )


class IdentityClaims(BaseModel):
    """Identity of a person by a provider. `subject` is permanent, while an e-mail address may change hands.

    `email` is a plain address in lower case that the provider has verified; so it never matches a login name without @.
    """

    issuer: str
    subject: str
    email: str | None = None


@cache
def ssl_context_of_trusted_authorities() -> ssl.SSLContext:
    """Return a TLS context with the trusted certificates. It is cached: reading them takes tens of milliseconds."""
    return httpx.create_ssl_context()


@dataclass
class Provider:
    """A provider, identified by its issuer's address. Its addresses and keys are fetched when first needed, and every
    hour.

    Attributes:
        issuer: The issuer's address.
        client_id: This server's id at the provider.
        client_secret: This server's secret at the provider.
        transport: Transport of the requests; None for the network.
        clock: Seconds of a monotonic clock.

    """

    issuer: str
    client_id: str
    client_secret: str
    transport: httpx.AsyncBaseTransport | None = None
    clock: Callable[[], float] = time.monotonic
    _documents: dict[str, tuple[float, Any]] = field(default_factory=dict)
    _resting_until: float = 0.0

    async def login_url(self, login_state: LoginState, redirect_uri: str) -> str:
        """Return the URL to send a browser to. Raises `BadGateway` (`provider_unreachable`)."""
        challenge = hashlib.sha256(login_state.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": redirect_uri,
            "scope": OPENID_SCOPE,
            "state": login_state.state,
            "nonce": login_state.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        address = (await self.load_openid_endpoints_or_refuse()).authorization_endpoint
        return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(query)}"

    async def exchange_code_for_identity_or_refuse(
        self, code: str, login_state: LoginState, redirect_uri: str
    ) -> IdentityClaims:
        """Return the identity of the person who came back with this code. Raises `BadGateway` (`provider_unreachable`)
        and `Unauthenticated` (`provider_refused`).
        """
        addresses = await self.load_openid_endpoints_or_refuse()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": login_state.verifier,
        }
        sends_secret_in_header = "client_secret_basic" in addresses.token_endpoint_auth_methods_supported
        secret = {"client_id": self.client_id, "client_secret": self.client_secret}
        reply = await self._request_json_or_refuse(
            "POST",
            addresses.token_endpoint,
            data=form if sends_secret_in_header else form | secret,
            auth=httpx.BasicAuth(self.client_id, self.client_secret) if sends_secret_in_header else None,
        )
        return self.verified_identity_or_refuse(
            await self._claims_of_signed_token_or_refuse(str(reply.get("id_token", ""))), login_state
        )

    def verified_identity_or_refuse(self, claims: dict[str, Any], login_state: LoginState) -> IdentityClaims:
        """Return the identity in claims with a valid signature. Raises `Unauthenticated` (`provider_refused`)."""
        registry = jwt.JWTClaimsRegistry(
            leeway=CLOCK_LEEWAY_SECONDS,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": login_state.nonce},
        )
        try:
            registry.validate(claims)
        except (JoseError, TypeError, ValueError, OverflowError) as problem:
            raise login_reply_mismatch_error() from problem
        has_several_audiences = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (has_several_audiences or "azp" in claims) and claims.get("azp") != self.client_id:
            raise login_reply_mismatch_error()
        subject, mail, verified = claims["sub"], claims.get("email"), claims.get("email_verified") is True
        if not is_nonempty_printable_text(subject) or len(subject) > MAX_SUBJECT_CHARACTERS:
            raise login_reply_mismatch_error()
        # Checked before lower-casing, which can turn letters of other alphabets into plain ones.
        email = mail.lower() if verified and isinstance(mail, str) and is_email_address(mail) else None
        return IdentityClaims(issuer=self.issuer, subject=subject, email=email)

    async def load_openid_endpoints_or_refuse(self) -> ProviderAddresses:
        """Return the provider's addresses. Raises `BadGateway` (`provider_unreachable`)."""
        document = await self._cached_or_fetched_document(
            "addresses", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        )
        try:
            addresses = ProviderAddresses.model_validate(document)
        except ValidationError as problem:
            raise provider_unreachable_error() from problem
        if addresses.issuer != self.issuer:  # OpenID Connect Discovery 1.0, section 4.3
            raise provider_unreachable_error()
        return addresses

    async def _claims_of_signed_token_or_refuse(self, token: str) -> dict[str, Any]:
        """Return the claims of a token signed with one of the provider's keys; fetch the keys again if no known key
        matches.
        """
        address = (await self.load_openid_endpoints_or_refuse()).jwks_uri
        for refresh in (False, True):
            keys = await self._cached_or_fetched_document("keys", address, refresh=refresh)
            with suppress(JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return dict(jwt.decode(token, KeySet.import_key_set(keys), algorithms=SIGNATURE_ALGORITHMS).claims)
        raise login_reply_mismatch_error()

    async def _cached_or_fetched_document(self, cache_key: str, address: str, *, refresh: bool = False) -> Any:
        until, document = self._documents.get(cache_key, (0.0, None))
        if document is None or refresh or self.clock() > until:
            if self.clock() < self._resting_until:
                raise provider_unreachable_error()
            try:
                document = await self._request_json_or_refuse("GET", address)
            except BadGateway:
                self._resting_until = self.clock() + PROVIDER_REST_SECONDS
                raise
            self._documents[cache_key] = self.clock() + PROVIDER_CACHE_SECONDS, document
        return document

    async def _request_json_or_refuse(self, method: str, address: str, **more: Any) -> dict[str, Any]:
        """Return a JSON object from the provider. No redirect is followed."""
        try:
            async with (
                asyncio.timeout(PROVIDER_TIMEOUT_SECONDS),
                httpx.AsyncClient(
                    transport=self.transport,
                    verify=ssl_context_of_trusted_authorities(),
                    timeout=PROVIDER_TIMEOUT_SECONDS,
                    follow_redirects=False,
                ) as client,
                client.stream(method, address, headers={"Accept": "application/json"}, **more) as reply,
            ):
                body = b""
                async for piece in reply.aiter_bytes():
                    body += piece
                    if len(body) > MAX_REPLY_BYTES:
                        raise provider_unreachable_error()
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as problem:
            raise provider_unreachable_error() from problem
        if reply.status_code in (400, 401, 403) and method == "POST":
            raise login_reply_mismatch_error()
        try:
            document = json.loads(body) if reply.status_code == 200 else None
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise provider_unreachable_error()
        return document


def is_nonempty_printable_text(claim: object) -> TypeGuard[str]:
    """Return whether the claim is text that can be stored and shown as it is."""
    return isinstance(claim, str) and claim != "" and claim.isprintable()


def provider_unreachable_error() -> BadGateway:
    return BadGateway(
        "The login provider cannot be reached, or its reply is not valid. Try again in a minute.",
        code="provider_unreachable",
    )


def login_reply_mismatch_error() -> Unauthenticated:
    return Unauthenticated(
        "The provider's reply does not match the login that you started. Start again.",
        code="provider_refused",
    )


def provider_denied_error() -> Unauthenticated:
    return Unauthenticated(
        "The login provider denied access, or you cancelled. Nothing was changed. You can start again.",
        code="provider_denied",
    )
