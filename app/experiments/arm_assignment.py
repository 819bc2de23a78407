"""Assignment of people to the arms of an experiment.

Each person has a random order of the arms, by a keyed hash of their id, and gets the first of them that still runs. So
the arms get about equally many people, no person changes arms when another arm ends, and nothing is stored.
"""

import hmac
from collections.abc import Sequence
from hashlib import sha256

from sqlalchemy import text

from app.database.session import Driver, Record, fetch_rows
from app.errors import NotFound

FIND_ARMS_BY_LINK = text("""
    SELECT e.arm, c.link_key, c.status, a.campaign_id IS NOT NULL AS known
    FROM experiment_arms e JOIN campaigns c ON c.id = e.campaign_id
    LEFT JOIN annotators a ON a.campaign_id = c.id AND a.platform = :platform AND a.worker_id = :worker_id
    WHERE e.link_key = :key
""")


class ArmCandidate(Record):
    """An arm, the key of its campaign's link, and whether this person has visited it before."""

    arm: str
    link_key: str
    status: str
    known: bool


async def load_arm_candidates_of_link_or_refuse(
    connection: Driver, key: str, platform: str, worker_id: str
) -> list[ArmCandidate]:
    """Load the arms of an experiment for a person. Raises `NotFound` (`campaign_not_found`)."""
    arms = await fetch_rows(
        connection, FIND_ARMS_BY_LINK, {"key": key, "platform": platform, "worker_id": worker_id}, ArmCandidate
    )
    if not arms:
        raise NotFound(
            "There is no study at this address. Please check that the link is complete.", code="campaign_not_found"
        )
    return arms


def choose_visited_or_running_arm(arms: Sequence[ArmCandidate], key: str, person: str) -> ArmCandidate:
    """Choose the arm that the person has visited, else the first running one in their order, else one that is not
    finished.
    """
    known_arms = [arm for arm in arms if arm.known]
    running = [arm for arm in arms if arm.status == "running"]
    not_over = [arm for arm in arms if arm.status != "finished"]
    return max(
        known_arms or running or not_over or arms, key=lambda arm: keyed_hash_of_arm_for_person(key, person, arm.arm)
    )


def keyed_hash_of_arm_for_person(key: str, person: str, arm: str) -> bytes:
    """Return the key that sorts the arms in a person's order."""
    return hmac.new(key.encode(), f"{arm} {person}".encode(), sha256).digest()
