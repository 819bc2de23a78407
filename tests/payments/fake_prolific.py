"""Prolific on loopback, as its API behaves, with what a test lets go wrong."""

import asyncio
import json
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.annotation.platforms.prolific.service import prolific_signature

TOKEN = "prolific-token-5f1c"
HOOK_SECRET = "s3cr3t"


@dataclass
class FakeProlific:
    """Its books.

    Attributes:
        submissions: By id, as the API shows them.
        bulks: Registered bonuses by their id: (submission, hundredths).
        paid: Every bonus that was paid, in order.
        rewards_paid: Every submission that was approved, in order.
        reward: Of studies that a test does not draft.
        hook_secrets: Secrets of notices by workspace.
        subscriptions: Subscriptions to notices by id, as the API shows them.
        test_participants: Addresses of people who may take part in test studies.
        studies: Drafted studies by id, as the API shows them.
        missing_for_bonuses: Submissions that get no bonus, although they are shown.
        slow: Payments that were accepted and not made yet, until `fit_until_scores_settle`.
        trouble: Called with "METHOD path" before each reply; it may return a reply, or raise.
        calls: Every call as "METHOD path".
        clients: Address and port of the connection of each call.

    """

    address: str = ""
    token: str = TOKEN
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)
    bulks: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    paid: list[tuple[str, int]] = field(default_factory=list)
    slow: list[tuple[str, int]] = field(default_factory=list)
    missing_for_bonuses: set[str] = field(default_factory=set)
    is_slow: bool = False
    studies: dict[str, dict[str, Any]] = field(default_factory=dict)
    trouble: Callable[[str], Response | None] = lambda _call: None
    after: Callable[[str], Response | None] = lambda _call: None
    calls: list[str] = field(default_factory=list)
    clients: list[tuple[str, int] | None] = field(default_factory=list)
    balance: int = 1_000_000
    reward: int = 90
    hook_secrets: dict[str, str] = field(default_factory=dict)
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    cost_currency: str = "GBP"
    allows_test_studies: bool = True
    test_participants: list[str] = field(default_factory=list)
    rewards_paid: list[str] = field(default_factory=list)
    currency_by_workspace: dict[str, str] = field(default_factory=dict)
    most_at_a_time: int = 0
    paying: int = 0

    def add(self, submission: str, status: str = "AWAITING REVIEW", study: str = "study-1", person: str = "") -> None:
        self.studies.setdefault(
            study, {"id": study, "status": "ACTIVE", "reward": self.reward, "total_available_places": 1_000}
        )
        self.submissions[submission] = {
            "id": submission,
            "participant_id": person or f"person-{submission}",
            "study_id": study,
            "status": status,
            "bonus_payments": [],
            "ip": "203.0.113.9",
        }

    def pay_by_hand(self, submission: str, amount: int) -> None:
        self.submissions[submission]["bonus_payments"].append(amount)

    def fit_until_scores_settle(self) -> None:
        """Make the payments that were accepted."""
        for submission, amount in self.slow:
            self.paid.append((submission, amount))
            self.submissions[submission]["bonus_payments"].append(amount)
        self.slow.clear()

    def paid_by_submission(self) -> dict[str, list[int]]:
        found = defaultdict(list)
        for submission, amount in (*self.paid, *self.slow):
            found[submission].append(amount)
        return dict(found)


def error(status: int, title: str, detail: Any) -> JSONResponse:
    return JSONResponse({"error": {"status": status, "title": title, "detail": detail}}, status)


async def get_books(request: Request) -> FakeProlific:
    books: FakeProlific = request.scope["books"]
    return books


Books = Annotated[FakeProlific, Depends(get_books)]
router = APIRouter()


@router.get("/api/v1/users/me/")
async def me() -> dict[str, str]:
    return {"id": "researcher-1", "email": "ada@example.org"}


@router.get("/api/v1/workspaces/{workspace}/balance/")
async def balance(books: Books, workspace: str) -> dict[str, Any]:
    currency = books.currency_by_workspace.get(workspace, "GBP")
    return {"currency_code": currency, "total_balance": books.balance, "available_balance": books.balance}


@router.get("/api/v1/reward-recommendations/")
async def recommendations(workspace_id: str, currency: str) -> dict[str, int]:
    return {"min_reward_per_hour": 600, "recommended_reward_per_hour": 900}


@router.post("/api/v1/studies/")
async def create_study_(books: Books, request: Request) -> Response:
    body, study = await request.json(), f"draft-{len(books.studies) + 1}"
    if body.get("filter_set_id") == "gone":
        return error(400, "Bad request", {"filter_set_id": ["There is no such filter set."]})
    books.studies[study] = {"id": study, "status": "UNPUBLISHED", **body}
    return JSONResponse(books.studies[study], 201)


@router.get("/api/v1/studies/{study}/")
async def study_(books: Books, study: str) -> Response:
    return JSONResponse(books.studies[study]) if study in books.studies else error(404, "Not found", "No study.")


@router.patch("/api/v1/studies/{study}/")
async def patch_study(books: Books, study: str, request: Request) -> Response:
    places = (await request.json())["total_available_places"]
    if places <= books.studies[study]["total_available_places"]:
        return error(400, "Bad request", "Places can only be added.")
    books.studies[study]["total_available_places"] = places
    return JSONResponse(books.studies[study])


@router.post("/api/v1/studies/{study}/transition/")
async def transition_study(books: Books, study: str, request: Request) -> Response:
    action, row = (await request.json())["action"], books.studies[study]
    wanted = {"PUBLISH": ("UNPUBLISHED", "ACTIVE"), "PAUSE": ("ACTIVE", "PAUSED"), "START": ("PAUSED", "ACTIVE")}
    before, after = wanted[action]
    if row["status"] != before:
        return error(400, "Bad request", f"The study is {row['status']}")
    row["status"] = after
    return JSONResponse(row)


@router.get("/api/v1/studies/{study}/submissions/")
async def submissions(books: Books, study: str, limit: int = 20, offset: int = 0) -> Response:
    rows = [row for row in books.submissions.values() if row["study_id"] == study]
    if (offset and offset >= len(rows)) or study == "gone":
        return error(404, "Not found", "Invalid page.")
    shown = ("id", "participant_id", "status", "ip", "reward")
    lean = [{key: row[key] for key in shown if key in row} for row in rows]
    return JSONResponse({"results": lean[offset : offset + limit], "_links": {"next": {"href": None}}})


@router.get("/api/v1/submissions/{submission}/")
async def submission_(books: Books, submission: str) -> Response:
    if submission not in books.submissions:
        return error(404, "Not found", {"submission": ["does not exist"]})
    return JSONResponse(books.submissions[submission])


@router.post("/api/v1/submissions/bonus-payments/")
async def prepare(books: Books, request: Request) -> Response:
    body = await request.json()
    lines = [line.split(",") for line in body["csv_bonuses"].splitlines()]
    if len(lines) > 200 or any(len(line) != 2 for line in lines):
        return error(400, "Bad request", {"csv_bonuses": ["200 lines of an id and an amount"]})
    if missing := [who for who, _ in lines if who not in books.submissions.keys() - books.missing_for_bonuses]:
        return error(400, "Bad request", {"csv_bonuses": [f"{missing[0]} is not in the study"]})
    bulk = f"bulk-{len(books.bulks) + 1}"
    books.bulks[bulk] = [(who, int(Decimal(amount) * 100)) for who, amount in lines]
    total = sum(amount for _, amount in books.bulks[bulk])
    return JSONResponse({"id": bulk, "amount": total, "fees": total * 0.3, "vat": 0, "total_amount": total * 1.3})


@router.post("/api/v1/bulk-bonus-payments/{bulk}/pay/")
async def pay(books: Books, bulk: str) -> Response:
    if sum(amount for _, amount in books.bulks[bulk]) > books.balance:
        return PlainTextResponse("Not enough money in your balance", 400)
    books.paying += 1
    books.most_at_a_time = max(books.most_at_a_time, books.paying)
    await asyncio.sleep(0)
    books.slow.extend(books.bulks[bulk])  # a second call pays a second time
    if not books.is_slow:
        books.fit_until_scores_settle()
    books.paying -= 1
    return Response(status_code=202)


@router.post("/api/v1/submissions/{submission}/transition/")
async def transition(books: Books, submission: str, request: Request) -> Response:
    body, row = await request.json(), books.submissions[submission]
    if row["status"] != "AWAITING REVIEW":
        return error(400, "Bad request", f"The submission is {row['status']}")
    if body["action"] == "REJECT" and (len(body["message"]) < 100 or "rejection_category" not in body):
        return error(400, "Bad request", {"message": ["at least 100 characters"]})
    row["status"] = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[body["action"]]
    if row["status"] == "APPROVED":
        books.rewards_paid.append(submission)
    return JSONResponse(row)


@router.post("/api/v1/submissions/{submission}/request-return/")
async def request_return_of_submission(books: Books, submission: str, request: Request) -> Response:
    reasons, row = (await request.json())["request_return_reasons"], books.submissions[submission]
    if row["status"] != "AWAITING REVIEW" or not reasons or "return_requested" in row:
        return error(400, "Bad request", "The return of this submission cannot be requested.")
    row["return_requested"] = reasons
    return JSONResponse(row)


@router.get("/api/v1/hooks/secrets/")
async def list_hook_secrets(books: Books, workspace_id: str) -> dict[str, Any]:
    found = books.hook_secrets.get(workspace_id)
    return {"results": [{"id": "secret-1", "value": found, "workspace_id": workspace_id}] if found else []}


@router.post("/api/v1/hooks/secrets/", status_code=201)
async def create_hook_secret(books: Books, request: Request) -> dict[str, str]:
    workspace = (await request.json())["workspace_id"]
    books.hook_secrets[workspace] = f"secret of {workspace}"
    return {"id": "secret-1", "value": books.hook_secrets[workspace], "workspace_id": workspace}


@router.get("/api/v1/hooks/subscriptions/")
async def list_hook_subscriptions(
    books: Books, workspace_id: str, is_enabled: str, limit: int = 20, offset: int = 0
) -> dict[str, Any]:
    rows = [row for row in books.subscriptions.values() if row["workspace_id"] == workspace_id]
    return {"results": [row for row in rows if row["is_enabled"] == (is_enabled == "true")][offset : offset + limit]}


@router.post("/api/v1/hooks/subscriptions/")
async def create_hook_subscription(books: Books, request: Request) -> Response:
    row = {"id": f"subscription-{len(books.calls)}", "is_enabled": False, **await request.json()}
    if not row["target_url"].startswith("https://"):
        return error(400, "Bad request", {"target_url": ["https only"]})
    books.subscriptions[row["id"]] = row
    return JSONResponse(row, 201, headers={"X-Hook-Secret": f"confirm {row['id']}"})


@router.post("/api/v1/hooks/subscriptions/{subscription}/")
async def confirm_hook_subscription(books: Books, subscription: str, request: Request) -> Response:
    if (await request.json())["secret"] != f"confirm {subscription}":
        return error(400, "Bad request", "Wrong secret.")
    books.subscriptions[subscription]["is_enabled"] = True
    return JSONResponse(books.subscriptions[subscription])


@router.delete("/api/v1/hooks/subscriptions/{subscription}/")
async def delete_hook_subscription(books: Books, subscription: str) -> Response:
    if books.subscriptions.pop(subscription, None) is None:
        return error(404, "Not found", "No subscription.")
    return Response(status_code=204)


@router.get("/api/v1/studies/{study}/cost/")
async def study_cost(books: Books, study: str, is_projected: bool = False) -> Response:
    row = books.studies[study]
    total = row["reward"] * row["total_available_places"] if is_projected else 0
    parts = {"rewards": total, "fees": total // 3, "tax": total // 15}
    money = {name: {"amount": amount, "currency": books.cost_currency} for name, amount in parts.items()}
    return JSONResponse({"rewards": money, "bonuses": None})


@router.post("/api/v1/researchers/participants/", status_code=201)
async def create_test_participant(books: Books, request: Request) -> Response:
    if not books.allows_test_studies:
        return error(403, "Forbidden", "Test participants are not enabled for this workspace.")
    books.test_participants.append((await request.json())["email"])
    return JSONResponse({"participant_id": "test-1"}, 201)


@router.post("/api/v1/studies/{study}/test-study/")
async def create_test_study_(books: Books, study: str) -> Response:
    if not books.test_participants:
        return error(400, "Bad request", "Create a test participant first.")
    if books.studies[study]["status"] != "UNPUBLISHED":
        return error(400, "Bad request", "Only drafts can be tested.")
    return JSONResponse(
        {"study_id": f"test-of-{study}", "study_url": f"https://app.prolific.com/studies/test-of-{study}"}
    )


@cache
def prolific_application() -> FastAPI:
    """Return the API, for which each request's scope names the books."""
    app = FastAPI()
    app.include_router(router)

    @app.middleware("http")
    async def guard(request: Request, call_next: Any) -> Response:
        books = await get_books(request)
        call = f"{request.method} {request.url.path.removeprefix('/api/v1')}"
        books.calls.append(call)
        books.clients.append(request.client and (request.client.host, request.client.port))
        if trouble := books.trouble(call):
            return trouble
        if request.headers.get("authorization") != f"Token {books.token}":
            return JSONResponse({"message": "Authentication failed", "detail": "Invalid token."}, 401)
        reply: Response = await call_next(request)
        return books.after(call) or reply

    return app


def create_fake(books: FakeProlific) -> ASGIApp:
    async def fake(scope: Scope, receive: Receive, send: Send) -> None:
        await prolific_application()({**scope, "books": books}, receive, send)

    return fake


class ProlificServer:
    """A server in a thread, on a free port, for all tests of a process; the first part of a path names the books."""

    def __init__(self) -> None:
        self.books: dict[str, FakeProlific] = {}
        config = uvicorn.Config(self._reply, port=0, log_level="error", lifespan="off", interface="asgi3")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    async def _reply(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, name, path = scope["path"].split("/", 2)
        await create_fake(self.books[name])({**scope, "path": f"/{path}"}, receive, send)

    @contextmanager
    def opened(self) -> Iterator[FakeProlific]:
        """Yield new books at an address of their own, at which nothing replies afterwards."""
        name = secrets.token_hex(4)
        books = self.books[name] = FakeProlific(f"http://127.0.0.1:{self.port}/{name}/api/v1")
        try:
            yield books
        finally:
            del self.books[name]

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()


def signed_notice(
    event: str, *, secret: str = HOOK_SECRET, timestamp: str = "1767225600", status: str = "RETURNED"
) -> dict[str, Any]:
    """A notice, as the arguments of a request."""
    body = json.dumps({"event_type": "submission.status.change", "resource_id": "sub1", "status": status}).encode()
    headers = {
        "X-Prolific-Request-Timestamp": timestamp,
        "X-Prolific-Request-Signature": prolific_signature(secret, timestamp, body),
        "X-Event-ID": event,
    }
    return {"content": body, "headers": headers}
