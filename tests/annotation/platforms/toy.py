"""The toy shop, a platform for tests only. `tests.annotation.platforms.toy:create_app` serves Easel with it."""

from collections.abc import Mapping

from fastapi import FastAPI

from app.annotation.platforms.platform import Arrival, ArrivalParameters, Completion, Platform, VisitOutcome
from app.annotation.platforms.registry import PLATFORMS
from app.settings import Settings

IDENTIFIERS = ArrivalParameters(("player", "round"), "Please go back to the toy shop.", "The shop fills them in.")


def read(parameters: Mapping[str, str], _settings: Settings) -> Arrival | None:
    player, turn = IDENTIFIERS.read_values(parameters)
    return Arrival(player, turn, {"prize": f"bear-of-{player}"})


def complete(details: Mapping[str, str], _chosen: Mapping[str, str | None], _outcome: VisitOutcome) -> Completion:
    return Completion(url=f"https://toys.example/{details['prize']}", label="Back to the toys")


TOY = Platform(
    "toy",
    "Toy shop",
    read,
    complete,
    IDENTIFIERS,
    has_return_page=True,
    one_hit_per_assignment=True,
    link_parameters="?player={{player}}&round={{round}}",
)


def create_app() -> FastAPI:
    """Return Easel with the toy shop, for a server process."""
    PLATFORMS[TOY.name] = TOY
    from app import main  # after the registration: importing main creates the routes

    return main.create_app()
