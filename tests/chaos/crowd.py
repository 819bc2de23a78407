"""Simulated annotators, who work through the API and through the page, in several tabs, and hang up in the middle."""

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from random import Random
from typing import Any

import httpx

from app.designs.design import Design
from app.designs.item_names import ItemName
from app.designs.registry import make_design
from app.designs.remarks import COMMENT_PREFIX, WHOLE_HIT
from tests.chaos.history import History, SentAnswer

PATIENCE_SECONDS = 8  # a browser would wait longer; a program may not
OVER = ("all_done", "stopped")
SAVED = "Saved. Next task."
COMMENT = "As the text says"
CANNOT_BE_JUDGED = ""  # the reason where none is asked for


@dataclass
class LaunchedCampaign:
    """A campaign as annotators and its owner need it.

    Attributes:
        is_over: Whether a server has said that there is nothing more to do, for anybody.

    """

    slug: str
    link: str
    settings: Mapping[str, Any]
    restores: bool
    is_over: bool = False

    @property
    def design(self) -> Design:
        return make_design(self.settings["design"], self.settings["design_settings"])

    @property
    def criteria(self) -> list[str]:
        return [criterion["name"] for criterion in self.settings["criteria"]]


class Caller:
    """Sends requests to any of the servers; what is lost, refused for now or hung up on is None."""

    def __init__(self, bases: Callable[[], Sequence[str]], bearer: str, history: History, rng: Random) -> None:
        self.bases, self.history, self.rng = bases, history, rng
        # Nothing is encrypted on the loopback.
        self.client = httpx.AsyncClient(timeout=PATIENCE_SECONDS, verify=False, headers={"accept": "text/html"})
        self.headers = {"authorization": f"Bearer {bearer}", "accept": "application/json"}

    async def send(self, method: str, path: str, *, hang_up: bool = False, **request: Any) -> httpx.Response | None:
        """Return the reply if a server gave one that is final."""
        if not (bases := self.bases()):
            await asyncio.sleep(0.2)
            return None
        sending = self.client.request(method, self.rng.choice(bases) + path, **request)
        try:
            reply = await (asyncio.wait_for(sending, self.rng.random() / 20) if hang_up else sending)
        except (httpx.HTTPError, TimeoutError):
            self.history.count_status(0)
            return None
        self.history.count_status(reply.status_code)
        if reply.status_code >= 500 and reply.status_code != 503:
            self.history.note_violations([f"{method} {path} gave {reply.status_code}: {reply.text[:300]}"])
        return None if reply.status_code in (429, 500, 503) else reply

    async def call_api(self, method: str, path: str, content: Any = None, **request: Any) -> httpx.Response | None:
        return await self.send(method, f"/api/v1{path}", json=content, headers=self.headers, **request)


class Annotator:
    """One annotator in one tab."""

    def __init__(self, caller: Caller, campaign: LaunchedCampaign, name: str, rng: Random) -> None:
        self.caller, self.campaign, self.name, self.rng = caller, campaign, name, rng
        self.history = caller.history

    @property
    def are_comments_required(self) -> bool:
        """True if an answer without comments is refused."""
        return bool(self.campaign.settings["comment_request"] == "required")

    async def answer_hits(self, count: int) -> None:
        """Answer up to so many HITs by one of the doors."""
        await (self.answer_by_api(count) if self.rng.random() < 0.6 else self.answer_by_page(count))

    def draw_values(self, items: int, *, can_skip: bool = True) -> list[float]:
        """Return values of all items by each criterion in turn; NaN for an item that cannot be judged."""
        design = self.campaign.design
        drawn = [
            value
            for _ in self.campaign.criteria or [""]
            for value in design.simulate_answer_values([self.rng.random() for _ in range(items)])
        ]
        if can_skip and self.campaign.settings["cannot_be_judged"] and self.rng.random() < 0.2:
            drawn[0] = math.nan
        return drawn

    # By the API

    async def answer_by_api(self, count: int) -> None:
        answered: set[int] = set()
        for _ in range(count):
            reply = await self.caller.call_api(
                "POST", f"/campaigns/{self.campaign.slug}/hits", {"annotator": self.name}
            )
            if reply is None or reply.status_code != 200:
                return
            if (hit := reply.json()["hit"]) is None:
                self.campaign.is_over |= reply.json()["reason"] in OVER
                return
            if hit["id"] in answered:
                self.history.note_violations(
                    [f"{self.campaign.slug}: HIT {hit['id']} was answered, and is asked again"]
                )
            sent = await self.send_by_api(hit, self.draw_values(len(hit["items"])))
            if sent.outcome == "acknowledged":
                answered.add(hit["id"])
            if self.rng.random() < 0.2:  # as programs do that saw no reply
                await self.send_by_api(hit, sent.values)
            if sent.seq is not None and not sent.repeated and self.rng.random() < 0.15:
                await self.send_by_api(hit, self.change(sent.values, len(hit["items"])), replaces=sent.seq)

    def change(self, values: Sequence[float], items: int) -> list[float]:
        """Return other values; an item that could not be judged still cannot be."""
        changed = self.draw_values(items, can_skip=False)
        return [math.nan if math.isnan(old) else new for old, new in zip(values, changed, strict=True)]

    async def send_by_api(
        self, hit: Mapping[str, Any], values: Sequence[float], replaces: int | None = None
    ) -> SentAnswer:
        sent = self.history.send(self.campaign.slug, hit["id"], values, replaces)
        body = {"annotator": self.name} | self.api_values(hit, values)
        if self.are_comments_required:
            ids = [item["id"] for item in hit["items"]]
            body |= {"comment": COMMENT, "comments": dict.fromkeys(ids, COMMENT)}
        if replaces is not None:
            body["replaces"] = replaces
        reply = await self.caller.call_api(
            "POST", f"/hits/{hit['id']}/response", body, hang_up=self.rng.random() < 0.03
        )
        if reply is not None and reply.status_code == 200:
            receipt = reply.json()
            sent.outcome, sent.seq, sent.repeated = "acknowledged", receipt["seq"], receipt["repeated"]
        elif reply is not None:
            sent.outcome = "refused"
        return sent

    def api_values(self, hit: Mapping[str, Any], values: Sequence[float]) -> dict[str, Any]:
        ids = [item["id"] for item in hit["items"]]
        parts = [
            {name: None if math.isnan(value) else value for name, value in zip(ids, values[start:], strict=False)}
            for start in range(0, len(values), len(ids))
        ]
        unable = [name for name, value in parts[0].items() if value is None]
        reasons = {"reasons": dict.fromkeys(unable, (hit["reasons"] or [CANNOT_BE_JUDGED])[0])} if unable else {}
        if self.campaign.criteria:
            return {"values": dict(zip(self.campaign.criteria, parts, strict=True))} | reasons
        return {"values": parts[0]} | reasons

    # By the page

    async def answer_by_page(self, count: int) -> None:
        """Answer as a browser without scripts does. Campaigns with criteria are left to programs."""
        if self.campaign.criteria:
            return
        page = await self.caller.send("POST", self.campaign.link, follow_redirects=True)
        for _ in range(count):
            if page is None or page.status_code != 200 or (form := read_hit_form(page.text)) is None:
                return
            sent = self.history.send(
                self.campaign.slug, int(form["hit"]), self.draw_values(len(form["items"]), can_skip=False)
            )
            page = await self.post_answer(form, sent)
            if page is not None and sent.outcome == "acknowledged" and self.rng.random() < 0.15:
                page = await self.change_last_answer(form["token"]) or page

    async def post_answer(self, form: Mapping[str, Any], sent: SentAnswer) -> httpx.Response | None:
        fields = self.campaign.design.form_fields(dict(zip(form["items"], sent.values, strict=True)))
        more = {"replaces": str(sent.replaces)} if sent.replaces is not None else {}
        if self.are_comments_required:
            more |= {f"{COMMENT_PREFIX}{subject}": COMMENT for subject in (WHOLE_HIT, *map(str, form["items"]))}
        page = await self.caller.send(
            "POST",
            self.campaign.link,
            data={"token": form["token"], "hit": form["hit"]} | more | fields,
            hang_up=self.rng.random() < 0.03,
        )
        if page is not None and page.status_code == 200 and SAVED in page.text:
            sent.outcome = "acknowledged"
        return page

    async def change_last_answer(self, token: str) -> httpx.Response | None:
        page = await self.caller.send("POST", self.campaign.link, data={"token": token, "undo": "1"})
        if page is None or (form := read_hit_form(page.text)) is None or form["replaces"] is None:
            return None
        values = self.draw_values(len(form["items"]), can_skip=False)
        sent = self.history.send(self.campaign.slug, int(form["hit"]), values, int(form["replaces"]))
        return await self.post_answer(form, sent)


def read_hit_form(html: str) -> dict[str, Any] | None:
    """Return the token, the HIT, the names of its items, and what it replaces; None if the page has no HIT."""
    fields = {name: re.search(rf'name="{name}" value="([^"]+)"', html) for name in ("token", "hit", "replaces")}
    items = re.search(r'data-items="([\d ]+)"', html)
    if items is None or fields["hit"] is None or fields["token"] is None:
        return None
    return {
        "token": unescape(fields["token"][1]),
        "hit": fields["hit"][1],
        "items": [ItemName(name) for name in items[1].split()],
        "replaces": fields["replaces"] and fields["replaces"][1],
    }
