"""One HTTP call to the address that a researcher chose, and what is known of it afterwards.

As for webhooks, the name is looked up once, nothing goes to a private network unless the operator allows it, and no
redirect is followed. Easel reads the status and `Retry-After` of the reply, and the beginning of its text only if that
is to confirm the call.
"""

import asyncio
from typing import Literal, NamedTuple
from urllib.parse import urlencode

import httpx

from app.alerts.webhook import DeliveryFailed, resolve_webhook_address_or_refuse, system_ssl_context
from app.annotation.platforms.platform import ServerCall

CALL_TIMEOUT_SECONDS = 10.0  # for the whole exchange
MAX_REPLY_BYTES = 65_536
TOO_MANY_REQUESTS = 429
FORM_MEDIA_TYPE = "application/x-www-form-urlencoded"


class CallResult(NamedTuple):
    """Outcome of a call, as far as it is known.

    Attributes:
        kind: `accepted`; `refused`, and would be again; `not_made`: the platform did nothing, so that it can be
            repeated; `unclear`: the platform may have counted it.
        problem: Why it was not accepted, without an address or a secret.
        retry_after_seconds: How long the platform asks to wait; 0 if it does not say.

    """

    kind: Literal["accepted", "refused", "not_made", "unclear"]
    problem: str = ""
    retry_after_seconds: int = 0


def call_timeout() -> httpx.Timeout:
    """Return the timeout of a call; half of it for the connection, so that a silent host counts as not reached."""
    return httpx.Timeout(CALL_TIMEOUT_SECONDS, connect=CALL_TIMEOUT_SECONDS / 2)


async def make_server_call(call: ServerCall, *, allow_private: bool) -> CallResult:
    """Make a call, within `CALL_TIMEOUT_SECONDS`, and return what is known of it. Raises nothing."""
    is_resolved = False
    try:
        async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
            url = httpx.URL(call.url).copy_with(fragment=None)
            endpoint = url.copy_with(host=await resolve_webhook_address_or_refuse(url, allow_private=allow_private))
            is_resolved = True
            # The certificate is checked against the name, and the connection goes to the address that was checked.
            async with (
                httpx.AsyncClient(verify=system_ssl_context(), trust_env=False, timeout=call_timeout()) as client,
                client.stream(
                    call.method,
                    endpoint,
                    content=urlencode(call.fields).encode() if call.fields else None,
                    headers={
                        "User-Agent": "Easel",
                        "Accept-Encoding": "identity",
                        **({"Content-Type": FORM_MEDIA_TYPE} if call.fields else {}),
                        **call.headers,
                        "Host": url.netloc.decode("ascii"),
                    },
                    extensions={"sni_hostname": url.raw_host.decode("ascii")},
                ) as reply,
            ):
                result = result_of_status(reply.status_code, reply.headers.get("Retry-After", ""))
                if result.kind == "accepted" and not await has_confirmation(reply, call.confirmation):
                    return CallResult("refused", "The platform replied without the text that confirms a call.")
                return result
    except DeliveryFailed as refusal:
        return CallResult("refused", str(refusal))
    except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
        return CallResult("not_made", f"The platform could not be reached ({type(problem).__name__}).")
    except Exception as problem:  # noqa: BLE001  (whatever it is, the platform may have received the call)
        kind = type(problem).__name__
        if not is_resolved:
            return CallResult("not_made", f"The platform could not be reached ({kind}).")
        return CallResult("unclear", f"The call was made, and no reply came ({kind}).")


async def has_confirmation(reply: httpx.Response, confirmation: str) -> bool:
    """Return whether the beginning of a reply contains a text; true without one, and nothing is read then."""
    beginning = b""
    wanted = confirmation.encode()
    if not wanted:
        return True
    async for part in reply.aiter_raw():
        beginning = (beginning + part)[:MAX_REPLY_BYTES]
        if wanted in beginning:
            return True
        if len(beginning) >= MAX_REPLY_BYTES:
            break
    return False


def result_of_status(status: int, retry_after: str) -> CallResult:
    """Return what a status says: 5xx leaves open whether the platform counted the call before it failed."""
    if 200 <= status < 300:
        return CallResult("accepted")
    problem = f"The platform answered with status {status}."
    if status == TOO_MANY_REQUESTS:
        is_number = retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9
        return CallResult("not_made", problem, int(retry_after) if is_number else 0)
    if status >= 500:
        return CallResult("unclear", problem)
    if 300 <= status < 400:
        return CallResult("refused", f"{problem} Easel follows no redirect: enter the address to which it leads.")
    return CallResult("refused", problem)
