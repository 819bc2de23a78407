"""No fault of a machine loses or invents an answer; and the checks that say so find faults of the product."""

import secrets
import sys

import pytest

from tests.chaos import run
from tests.chaos.run import Plan, run_chaos
from tests.chaos.server import DELIBERATE_FAULTS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


SECONDS_OF_WORK = 120  # a run for hours is a command: `python -m tests.chaos --minutes 60`
# Far fewer than a slow machine makes in two minutes; a run with less proves nothing.
MIN_FAULTS = 5
MIN_ACKNOWLEDGED = 30


async def test_faults_of_the_machine_lose_and_invent_no_answer():
    report = await run_chaos(Plan(SECONDS_OF_WORK, secrets.randbelow(10**9), min_answers=MIN_ACKNOWLEDGED))
    sys.stdout.write("\n".join(report.lines()) + "\n")  # shown with a failure: the seed is in it
    assert report.violations == []
    assert report.injected.total() >= MIN_FAULTS
    assert report.acknowledged >= MIN_ACKNOWLEDGED


async def test_a_round_in_which_faults_interrupt_all_launches_finds_nothing(monkeypatch, database_url):
    monkeypatch.setattr(run, "LAUNCHES_AT_ONCE", 0)
    seen = []
    plan = Plan(1, 3, injects=False, database_url=database_url)
    report = await run_chaos(plan, after_round=lambda report: seen.append(report.rounds))
    assert (report.violations, report.campaigns, report.rounds) == ([], 0, 1)
    assert seen == [1]


async def test_each_deliberate_fault_of_the_product_is_found_by_its_sign():
    """All of them are in the same servers: to start a machine for each takes longer than to find it."""
    report = await run_chaos(Plan(600, 2018, sorted(DELIBERATE_FAULTS), injects=False))
    sys.stdout.write("\n".join(report.lines()) + "\n")
    assert report.missing_faults() == []
