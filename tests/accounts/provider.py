"""A provider of logins for tests, in a process of its own.

`python -m tests.accounts.provider` prints its address and serves.

It signs with real keys and keeps to OpenID Connect; a test says by POST /behave how the next logins shall be.
"""

import asyncio
import base64
import hashlib
import secrets
import sys
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT, SECRET = "easel", "what only the two know"

provider = FastAPI()
keys = {"published": RSAKey.generate_key(2048, {"kid": "one"}), "other": RSAKey.generate_key(2048, {"kid": "one"})}
codes: dict[str, dict[str, str]] = {}
behaviour: dict[str, Any] = {}


@provider.post("/behave")
async def behave(request: Request) -> None:
    """Behave as the parameters say, and forget earlier settings; `claims` are added to the usual claims."""
    behaviour.clear()
    behaviour.update(await request.json())
    if behaviour.pop("new_key", False):
        kid = secrets.token_hex(4)
        keys["published"] = RSAKey.generate_key(2048, {"kid": kid})


@provider.get("/.well-known/openid-configuration")
async def discovery(request: Request) -> Response:
    issuer = str(request.base_url).rstrip("/")
    if behaviour.get("discovery") == "slow":
        await asyncio.sleep(2)
    if behaviour.get("discovery") == "dripping":
        return StreamingResponse(dripping())
    if behaviour.get("discovery") == "deep":
        return Response("[" * 100_000)
    if behaviour.get("discovery") == "endless":
        return Response("x" * 1_000_000)
    found = {
        "issuer": behaviour.get("issuer", issuer),
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
        "token_endpoint_auth_methods_supported": [behaviour.get("method", "client_secret_basic")],
    }
    return JSONResponse(found)


async def dripping() -> AsyncIterator[bytes]:
    """Send a byte every tenth of a second, so that no single read times out."""
    for _ in range(30):
        yield b" "
        await asyncio.sleep(0.1)


@provider.get("/authorize")
async def authorize(request: Request) -> Response:
    asked = dict(request.query_params)
    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    assert "openid" in asked["scope"].split()
    code = secrets.token_urlsafe(16)
    codes[code] = asked
    return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 303)


@provider.post("/token")
async def token(request: Request) -> Response:
    form = dict(await request.form())
    if behaviour.get("method") == "client_secret_post":
        known = (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET)
    else:
        wanted = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        known = request.headers.get("authorization") == f"Basic {wanted}"
    asked = codes.pop(str(form.get("code")), None)
    if not known or asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
        return JSONResponse({"error": "invalid_grant"}, 400)
    challenge = hashlib.sha256(str(form.get("code_verifier")).encode()).digest()
    if base64.urlsafe_b64encode(challenge).decode().rstrip("=") != asked["code_challenge"]:
        return JSONResponse({"error": "invalid_grant"}, 400)
    now, issuer = int(time.time()), str(request.base_url).rstrip("/")
    claims = {"iss": issuer, "aud": CLIENT, "sub": "person 1", "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
    claims |= {"email": "ada@lab.example", "email_verified": True} | behaviour.get("claims", {})
    claims = {name: value for name, value in claims.items() if value is not None}
    return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": signed(claims)})


def signed(claims: dict[str, Any]) -> str:
    how = behaviour.get("signed", "well")
    if how == "none":
        empty = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
        body = base64.urlsafe_b64encode(str(claims).replace("'", '"').replace("True", "true").encode()).decode()
        return f"{empty}.{body.rstrip('=')}."
    if how == "deep":
        head = base64.urlsafe_b64encode(b"[" * 40_000).decode().rstrip("=")
        return f"{head}.{head}.{head}"
    if how == "by our secret":
        return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET.encode() * 2))
    key = keys["other" if how == "by another key" else "published"]
    return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


@provider.get("/keys")
async def published() -> dict[str, Any]:
    return {"keys": [keys["published"].as_dict(private=False)]}


class Announcing(uvicorn.Server):
    """A server that announces its address once it can be reached."""

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"{self.servers[0].sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    Announcing(uvicorn.Config(provider, port=0, log_level="error")).run()
