"""A campaign owner, who launches campaigns and then pauses, excludes and restores while people work."""

import asyncio
from contextlib import suppress
from random import Random
from urllib.parse import urlsplit

from tests.chaos.campaigns import ChosenCampaign, campaign_for_race, choose_campaigns
from tests.chaos.crowd import Caller, LaunchedCampaign

RUNNING_AT_ONCE = 12
RACES = 4  # campaigns for a race, before those of each kind
SECONDS_TO_DECIDE = 30  # the reply comes when the posteriors include the decision


async def launch_campaign(caller: Caller, chosen: ChosenCampaign) -> LaunchedCampaign:
    """Create a campaign with its items, and launch it. Raises AssertionError if a fault interrupts that."""
    created = await caller.call_api("POST", "/campaigns", chosen.settings)
    assert created is not None, "no server answers"
    assert created.status_code == 201, created.text
    slug = created.json()["slug"]
    headers = caller.headers | {"content-type": "text/csv"}
    shown = "?shown=text" if "text" in chosen.table.splitlines()[0] else ""  # outputs have a column of their own
    imported = await caller.send(
        "POST", f"/api/v1/campaigns/{slug}/items{shown}", content=chosen.table.encode(), headers=headers
    )
    assert imported is not None, "no server answers"
    assert imported.status_code == 201, imported.text
    launched = await caller.call_api("POST", f"/campaigns/{slug}/transitions", {"action": "launch"})
    assert launched is not None, "no server answers"
    assert launched.status_code == 200, launched.text
    campaign = launched.json()
    return LaunchedCampaign(slug, urlsplit(campaign["links"]["link"]).path, campaign["settings"], chosen.restores)


class Owner:
    """Decides about annotators and answers of all campaigns of a round."""

    def __init__(self, caller: Caller, campaigns: list[LaunchedCampaign], rng: Random) -> None:
        self.caller, self.campaigns, self.rng = caller, campaigns, rng
        self.upcoming: list[ChosenCampaign] = []

    async def launch_until(self, is_over: asyncio.Event) -> None:
        """Launch further campaigns as others end; of those that a fault interrupts, nothing is known."""
        while not is_over.is_set():
            await asyncio.sleep(0.1)
            if sum(not campaign.is_over for campaign in self.campaigns) >= RUNNING_AT_ONCE:
                continue
            if not self.upcoming:
                self.upcoming = choose_campaigns(self.rng)
                self.rng.shuffle(self.upcoming)
                self.upcoming += [campaign_for_race(self.rng) for _ in range(RACES)]  # the last ones come first
            with suppress(AssertionError):
                self.campaigns.append(await launch_campaign(self.caller, self.upcoming.pop()))

    async def decide_until(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            await asyncio.sleep(self.rng.random())
            if not self.campaigns:
                continue
            campaign = self.rng.choice(self.campaigns)
            act = self.rng.choice((self.pause_for_a_moment, self.decide_on_annotator, self.decide_on_answer))
            await act(campaign)
        for campaign in self.campaigns:  # what a lost reply left paused
            await self.caller.call_api("POST", f"/campaigns/{campaign.slug}/transitions", {"action": "resume"})

    async def pause_for_a_moment(self, campaign: LaunchedCampaign) -> None:
        for action in ("pause", "resume"):
            await self.caller.call_api("POST", f"/campaigns/{campaign.slug}/transitions", {"action": action})
            await asyncio.sleep(self.rng.random() / 2)

    async def decide_on_annotator(self, campaign: LaunchedCampaign) -> None:
        reply = await self.caller.call_api("GET", f"/campaigns/{campaign.slug}/annotators")
        if reply is None or reply.status_code != 200 or not (annotators := reply.json()["annotators"]):
            return
        annotator = self.rng.choice(annotators)
        is_excluded = annotator["barred"] is not None
        if is_excluded and not campaign.restores:
            return
        await self.send_decision(campaign, f"annotators/{annotator['name']}", "restore" if is_excluded else "exclude")

    async def decide_on_answer(self, campaign: LaunchedCampaign) -> None:
        acknowledged = [
            answer.seq
            for answer in self.caller.history.answers
            if answer.slug == campaign.slug and answer.seq is not None and answer.outcome == "acknowledged"
        ]
        if acknowledged:
            action = self.rng.choice(("exclude", "restore")) if campaign.restores else "exclude"
            await self.send_decision(campaign, f"answers/{self.rng.choice(acknowledged)}", action)

    async def send_decision(self, campaign: LaunchedCampaign, subject: str, action: str) -> None:
        decision = self.caller.history.decide(campaign.slug, subject, action)
        reply = await self.caller.call_api(
            "POST",
            f"/campaigns/{campaign.slug}/{subject}/{action}",
            {"reason": "a test of chaos"},
            timeout=SECONDS_TO_DECIDE,
        )
        if reply is not None:
            decision.outcome = "acknowledged" if reply.status_code == 204 else "refused"
