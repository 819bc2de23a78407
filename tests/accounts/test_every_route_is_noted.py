"""Whatever changes something writes a line of the audit log, or stands here with the reason why not.

A developer who adds a route that changes something adds a request to `CHANGES`, which must write a line, or a reason to
`UNNOTED`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from app.accounts import login, users
from app.accounts.secrets import csrf_token_of_session
from app.campaigns import form_values
from app.database.alerts import store_alert_unless_known
from app.privacy.consent_text import StudyFacts, draft_consent_text
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import fetch_rows, fetch_value

READING = {"GET", "HEAD", "OPTIONS"}
OF_ANNOTATORS = "annotators' answers are the record itself, and annotators have no names in the log"
OF_OLDER_EDITIONS = "it needs a campaign that began with an older edition (tests/record/test_law_editions.py)"
UNNOTED = {
    ("POST", "/{platform_name:platform}/{link_key}"): OF_ANNOTATORS,
    ("PUT", "/{platform_name:platform}/{link_key}"): OF_ANNOTATORS,
    ("POST", "/{platform_name:platform}/{link_key}/withdraw"): "it takes an annotator's token (tests/privacy)",
    ("POST", "/api/v1/campaigns/{slug}/hits"): OF_ANNOTATORS,
    ("POST", "/api/v1/hits/{hit_id}/response"): OF_ANNOTATORS,
    ("POST", "/api/v1/campaigns/{slug}/consents"): OF_ANNOTATORS,
    ("POST", "/admin/campaigns/{slug}/items/preview"): "it stores nothing",
    ("POST", "/admin/campaigns/{slug}/responses/preview"): "it stores nothing",
    ("POST", "/api/v1/campaigns/{slug}/responses/preview"): "it stores nothing",
    ("POST", "/admin/account/openid"): "it leads to the provider; the return is noted (test_openid)",
    ("POST", "/admin/account/openid/disconnect"): "it takes a provider (test_openid)",
    ("POST", "/admin/campaigns/{slug}/try/hit"): "it stores nothing",
    ("PUT", "/admin/campaigns/{slug}/try/hit"): "it stores nothing",
    ("POST", "/admin/campaigns/{slug}/law-edition/newest"): OF_OLDER_EDITIONS,
    ("POST", "/api/v1/campaigns/{slug}/law-edition/newest"): OF_OLDER_EDITIONS,
    ("POST", "/admin/campaigns/{slug}/preview"): "it stores nothing",
    ("PUT", "/admin/campaigns/{slug}/preview"): "it stores nothing",
    ("POST", "/admin/campaigns/{slug}/try/consent"): "it stores nothing",
    ("POST", "/admin/campaigns/{slug}/try/consent-text"): "it stores nothing",
}

OF_PAYMENTS = "it takes annotators of a platform that pays (tests/payments/test_payment_pages.py)"
UNNOTED |= {
    ("POST", f"/admin/campaigns/{{slug}}/payments/{act}"): OF_PAYMENTS
    for act in ("disconnect", "bonuses", "everyone", "send", "retry", "by-hand", "{payment}/decision")
}
UNNOTED |= {
    ("POST", f"/api/v1/campaigns/{{slug}}/payments{act}"): OF_PAYMENTS
    for act in ("", "/send", "/retry", "/{payment}/decision")
}
UNNOTED |= {
    ("POST", f"{path}/submissions{act}"): "it takes submissions of a platform (tests/payments/test_submission_pages.py)"
    for path in ("/admin/campaigns/{slug}", "/api/v1/campaigns/{slug}")
    for act in ("", "/settings", "/notices")
}
UNNOTED |= {
    ("POST", f"{path}/study{act}"): "it takes a platform (tests/recruiting)"
    for path in ("/admin/campaigns/{slug}", "/api/v1/campaigns/{slug}")
    for act in ("", "/draft", "/test")
}
UNNOTED |= {
    ("POST", f"{path}/calls/{act}"): "it takes a visit that ended (tests/server_calls/test_call_pages.py)"
    for path in ("/admin/campaigns/{slug}", "/api/v1/campaigns/{slug}")
    for act in ("repeat", "earlier", "{call}/decision")
}
UNNOTED["POST", "/admin/campaigns/{slug}/tasks-for-all-items"] = "it takes many items (tests/campaigns/test_totals.py)"
UNNOTED["POST", "/admin/campaigns/{slug}/better-rule"] = "it takes a better rule (tests/campaigns/test_needs.py)"
UNNOTED["POST", "/admin/campaigns/{slug}/adjudicate"] = "it takes labels (tests/adjudication)"
UNNOTED["POST", "/api/v1/campaigns/{slug}/adjudications"] = "it takes labels (tests/adjudication)"
UNNOTED["DELETE", "/api/v1/campaigns/{slug}/submissions/notices"] = "it takes a platform (test_notice_subscription)"
UNNOTED[("POST", "/{platform_name:platform}/hook/{hook_key}")] = "it changes nothing itself"

PASSWORD = "correct horse battery staple"
CURRENT = {"current": PASSWORD}
MANAGER = {"data": {"role": "manager"} | CURRENT}
TOKEN_NAME = "notebook"
SETTINGS = form_values.new_campaign_form_values() | {
    "name": "Verbs",
    "question": "How often?",
    "low_label": "rare",
    "high_label": "frequent",
}
CONSENT = {"consent": draft_consent_text(StudyFacts.from_study_form({}))}
ITEMS = "id,verb,truth\n" + "".join(f"v{k},verb {k},{k}0\n" for k in range(8))
ANSWERS = "hit,annotator,item,value\n" + "".join(f"h{{0}},Ann,v{k},{10 * k}\n" for k in range(5))
FILE = {"name": "Nouns", "question": "How often?"}
WHY = {"json": {"reason": "Answers at random."}}
REASON = {"data": WHY["json"]}
ON_PAGE = {"annotator": "A1", "answer": "last", "action": "exclude"}
ABOUT = {"slug": "adverbs", "annotator": "A1", "answer": "last"}
CAMPAIGN, API = "/admin/campaigns/{slug}", "/api/v1/campaigns/{slug}"


@dataclass(frozen=True)
class Change:
    """A request that changes something. where: what stands in its address; of it, a user or token by its name."""

    method: str
    path: str
    sent: dict[str, Any] = field(default_factory=dict)
    where: dict[str, Any] = field(default_factory=dict)


def page(path: str, slug: str = "verbs", **data: str) -> Change:
    return Change("POST", path, {"data": data}, {"slug": slug})


def table(content: str) -> dict[str, Any]:
    """Return a table as a program sends it."""
    return {"content": content, "headers": {"content-type": "text/csv"}}


def lead(action: str, slug: str = "verbs") -> Change:
    return page(f"{CAMPAIGN}/{action}", slug)


CHANGES = [
    page("/login", name="admin", password=PASSWORD),
    Change("POST", "/admin/account/tokens", {"data": {"name": TOKEN_NAME, "scope": ["read", "manage"]} | CURRENT}),
    Change("POST", "/api/v1/tokens", {"json": {"name": "admin", "password": PASSWORD}}),
    page("/admin/people", name="bea", current=PASSWORD),
    Change("POST", "/admin/people/{user_id}/link", {"data": CURRENT}, {"user_id": "bea"}),
    Change("POST", "/admin/people/{user_id}/role", MANAGER, {"user_id": "bea"}),
    Change("POST", "/admin/people/{user_id}/remove", {"data": CURRENT}, {"user_id": "bea"}),
    page("/admin/people", name="cat", current=PASSWORD),
    page("/admin/campaigns/new", **SETTINGS),
    Change("POST", CAMPAIGN + "/settings/{step}", {"data": {"seed": "7"}}, {"step": "advanced"}),
    Change("POST", CAMPAIGN + "/items", {"data": {"shown": "verb"}, "files": {"file": ("a.csv", ITEMS)}}),
    page(CAMPAIGN + "/items/checks", action="gold", item="v5", expected="80", tolerance=""),
    page(CAMPAIGN + "/items/unmark", item="v5"),
    page(CAMPAIGN + "/items/gold", kind="gold", pasted="id,text,expected\ng9,to run,90"),
    page(CAMPAIGN + "/check-remedy", kind="gold", remedy="show"),
    Change("POST", CAMPAIGN + "/settings/{step}", {"data": {"checks_percent": ""}}, {"step": "quality"}),
    page(CAMPAIGN + "/items/show-checks"),
    page(CAMPAIGN + "/items/known-answers", column="truth", count="1", keep="on"),
    page(CAMPAIGN + "/items/one", text="verb 6"),
    page(CAMPAIGN + "/items/chosen", action="delete", item="v5", sure="yes"),
    page(CAMPAIGN + "/items/text", item="v4", text="verb four"),
    page(CAMPAIGN + "/rehearse"),
    page(CAMPAIGN + "/remove-rehearsal", "verbs-rehearsal"),
    page(CAMPAIGN + "/copy"),
    page(CAMPAIGN + "/delete", "verbs-copy"),
    page(CAMPAIGN + "/people", names="Ann"),
    page(CAMPAIGN + "/participants", list="block", action="add", people="Zoe"),
    page(CAMPAIGN + "/members", name="cat", current=PASSWORD),
    Change("POST", CAMPAIGN + "/members/{user_id}/role", MANAGER, {"user_id": "cat"}),
    Change("POST", CAMPAIGN + "/members/{user_id}/remove", {"data": CURRENT}, {"user_id": "cat"}),
    page(CAMPAIGN + "/invitations", words="Dan", current=PASSWORD),
    Change("POST", CAMPAIGN + "/invitations/{invitation}/withdraw", {}, {"invitation": "Dan"}),
    page("/admin/people/invitations", words="Eve", current=PASSWORD),
    Change("POST", "/admin/people/invitations/{invitation}/withdraw", {}, {"invitation": "Eve"}),
    page(CAMPAIGN + "/invitations", words="Fay", current=PASSWORD),
    Change("POST", "/invitation", {"data": {"way": "me"}}),
    page(CAMPAIGN + "/links", words="co-authors", current=PASSWORD),
    Change("POST", CAMPAIGN + "/links/{link}/withdraw", {}, {"link": "co-authors"}),
    page(CAMPAIGN + "/judgments-per-item", judgments_per_item="12"),
    page(CAMPAIGN + "/close-open-link"),
    Change("POST", CAMPAIGN + "/settings/{step}", {"data": CONSENT}, {"step": "visit"}),
    Change("POST", CAMPAIGN + "/settings/{step}", {"data": CONSENT | {"pay_per_hit": "0.5"}}, {"step": "visit"}),
    page(CAMPAIGN + "/write-consent"),
    page(CAMPAIGN + "/tags", tags="pilot, German"),
    page("/admin/campaigns/chosen", action="add-tags", tags="main", campaign="verbs"),
    lead("launch"),
    lead("revert"),
    lead("launch"),
    Change("POST", CAMPAIGN + "/settings/{step}", {"data": {"prolific_completion_code": "DONE1"}}, {"step": "visit"}),
    Change("POST", CAMPAIGN + "/responses", {"files": {"file": ("a.csv", ANSWERS.format(1))}}),
    Change("POST", CAMPAIGN + "/annotators/{annotator}/{action}", REASON, ON_PAGE | {"action": "hold"}),
    Change("POST", CAMPAIGN + "/annotators/{annotator}/answers/{answer}/{action}", REASON, ON_PAGE),
    page(CAMPAIGN + "/checks/decisions", action="release:A1", reason="looked at"),
    page(CAMPAIGN + "/checks/rules", **{"gold.action": "hold"}),
    page(CAMPAIGN + "/payments/connection", budget="10"),
    page(CAMPAIGN + "/privacy", term="Ann"),
    Change(
        "POST", CAMPAIGN + "/privacy/{person}/erase", {"data": {"rule": "anonymise", "sure": "yes"}}, {"person": "A1"}
    ),
    lead("pause"),
    lead("resume"),
    lead("finish"),
    lead("reopen"),
    lead("finish"),
    Change("POST", CAMPAIGN + "/alerts/{alert}/seen", {}, {"alert": "A7"}),
    lead("archive"),
    lead("restore"),
    Change("POST", "/admin/campaigns/new/file", {"files": {"file": ("a.yaml", "name: Nouns\nquestion: How?\n")}}),
    Change("POST", "/api/v1/campaigns", {"json": FILE | {"name": "Adverbs"}}),
    Change("POST", "/api/v1/campaigns/files", {"content": "name: More\nquestion: How?\n"}),
    Change("POST", API + "/copies", {}, {"slug": "adverbs"}),
    Change("DELETE", API, {}, {"slug": "adverbs-copy"}),
    Change("PATCH", API, {"json": {"seed": 3}}, {"slug": "adverbs"}),
    Change(
        "POST", "/api/v1/campaigns/chosen", {"json": {"action": "add-tags", "slugs": ["adverbs"], "tags": ["main"]}}
    ),
    Change("POST", API + "/items?shown=verb", table(ITEMS), {"slug": "adverbs"}),
    Change("PUT", API + "/items/text", {"json": {"id": "v4", "text": "verb four"}}, {"slug": "adverbs"}),
    Change(
        "POST",
        API + "/items/checks",
        {"json": {"kind": "gold", "checks": [{"id": "v5", "expected": "80"}], "keep": True}},
        {"slug": "adverbs"},
    ),
    Change("POST", API + "/items/known-answers", {"json": {"count": 1, "keep": True}}, {"slug": "adverbs"}),
    Change("POST", API + "/people", {"json": {"names": ["Ann"]}}, {"slug": "adverbs"}),
    Change("POST", API + "/participants/{list_name}", {"json": {"ids": ["Zoe"]}}, ABOUT | {"list_name": "block"}),
    Change("POST", API + "/transitions", {"json": {"action": "launch"}}, {"slug": "adverbs"}),
    Change("POST", API + "/items/changes", {"json": {"action": "retire", "ids": ["v5"]}}, {"slug": "adverbs"}),
    Change("POST", API + "/responses", table(ANSWERS.format(2)), {"slug": "adverbs"}),
    Change("POST", API + "/alerts/{alert}/seen", {}, {"slug": "adverbs", "alert": "A8"}),
    Change("POST", API + "/annotators/{annotator}/{action}", WHY, ABOUT | {"action": "hold"}),
    Change(
        "POST",
        API + "/annotators/decisions",
        {"json": {"action": "release", "annotators": ["A1"], "reason": "looked at"}},
        {"slug": "adverbs"},
    ),
    Change("POST", API + "/answers/{answer}/{action}", WHY, ABOUT | {"action": "exclude"}),
    Change("POST", API + "/payments/connection", {"json": {"budget": 1000}}, {"slug": "adverbs"}),
    Change("POST", API + "/persons/search", {"json": {"term": "Ann"}}, {"slug": "adverbs"}),
    Change(
        "POST",
        API + "/persons/{person}/erasure",
        {"json": {"rule": "remove"}},
        {"slug": "adverbs", "person": "A1"},
    ),
    Change("POST", "/admin/account/tokens/{token_id}/revoke", {}, {"token_id": TOKEN_NAME}),
    page("/admin/account/password", current=PASSWORD, password=PASSWORD + " 2"),
    page("/admin/account/logout-everywhere"),
    page("/logout"),
]  # fmt: skip


def changing(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Return (method, path) of every route that does not only read."""
    for route in iter_route_contexts(app.routes):
        for method in (route.methods or set()) - READING:
            yield method, str(route.path)


def test_every_route_that_changes_something_is_tried_here_or_says_why_it_writes_no_line(app):
    tried = {(change.method, change.path.partition("?")[0]) for change in CHANGES}
    assert not tried & set(UNNOTED)
    assert set(changing(app)) == tried | set(UNNOTED)


class Visitor:
    """A client that sends the requests of `CHANGES`, with a token for those of programs."""

    def __init__(self, app, engine, researcher):
        self.app, self.engine, self.researcher, self.token = app, engine, researcher, ""
        self.invitation = ""

    async def send(self, change: Change):
        headers = {"authorization": f"Bearer {self.token}"} if change.path.startswith("/api/") else {}
        kept = dict(change.sent)
        headers |= kept.pop("headers", {})
        where = {"slug": "verbs"} | change.where
        for name, table in (("user_id", "users"), ("token_id", "api_tokens")):
            if name in where:
                found = f"SELECT id FROM {table} WHERE name = :name ORDER BY id DESC LIMIT 1"
                where[name] = await fetch_value(self.engine, found, name=where[name])
        of_words = "SELECT id FROM {} WHERE words = :words"
        for name, table in (("invitation", "invitations"), ("link", "campaign_links")):
            if name in where:
                where[name] = await fetch_value(self.engine, of_words.format(table), words=where[name])
        if change.path == "/invitation":
            kept = {"data": kept["data"] | {"token": self.invitation}}
        if "alert" in where:
            where["alert"] = await self.alert(where["slug"], where["alert"])
        if "answer" in where:
            where["answer"] = await fetch_value(self.engine, "SELECT max(seq) FROM responses")
        address = change.path.format(**where)
        answer = await self.researcher.request(change.method, address, headers=headers, **kept)
        assert answer.status_code < 400, (change, answer.text)
        if shown := re.search(r'id="new-token">([^<]+)<', answer.text):
            self.token = shown[1]
        if shown := re.search(r'id="new-invitation">[^<]+token=([^<]+)<', answer.text):
            self.invitation = shown[1]
        return answer

    async def alert(self, slug, about):
        """Store an alert and return its number."""
        async with self.engine.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            await store_alert_unless_known(connection, campaign.id, "held", about, about=about)
        return await fetch_value(self.engine, "SELECT id FROM alerts WHERE about = :about", about=about)


@pytest.fixture
def csrf_kept(researcher):
    """Return the cookies of the first session, which outlives a new login."""
    return dict(researcher.cookies)


async def test_what_changes_something_writes_a_line_and_no_secret(app, engine, researcher, csrf_kept):
    await researcher.post("/admin/account/password", data={"password": PASSWORD})
    visitor = Visitor(app, engine, researcher)
    count = "SELECT count(*) FROM audit_log"
    for change in CHANGES:
        if change.path == "/logout":  # the one before has ended all sessions
            await log_in_again(app, researcher)
        before = await fetch_value(engine, count)
        await visitor.send(change)
        assert await fetch_value(engine, count) > before, f"{change.method} {change.path} wrote no line"
        if change.path == "/login":
            researcher.cookies.clear()
            researcher.cookies.update(csrf_kept)
    assert visitor.token
    written = "\n".join(row[0] for row in await fetch_rows(engine, "SELECT audit_log::text FROM audit_log"))
    assert PASSWORD not in written
    assert visitor.token not in written
    assert visitor.invitation not in written
    assert "Ann" not in written


async def log_in_again(app, researcher):
    now = datetime.now(UTC)
    async with app.state.database.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=now)
        session = await login.start_session_and_return_secret(connection, admin.id, now=now, hours=12)
    researcher.cookies.clear()
    researcher.cookies.set(app.state.cookie_name, session)
    researcher.headers["X-CSRF-Token"] = csrf_token_of_session(session)
