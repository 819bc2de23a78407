"""Looks at the annotators of a campaign that people answer: what is found, stored and done."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest

from app.annotation.hits import submission
from app.campaigns.settings import CampaignSettings
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.goal_monitor.monitor import GoalScanState
from app.quality import inputs, rule_monitor, run_rules
from app.quality.rule import RuleAssessment
from app.quality.rule_assessments import iterate_assessments_by_rule
from app.quality.rule_monitor import CampaignMonitor
from app.quality.rules.agreement import AgreementWithOthers
from app.quality.rules.failed_checks import FailedGoldRule
from app.quality.run_rules import find_annotators_by_rules, scan_annotators_and_record_findings
from app.quality.settings import RuleChoice, active_rule_choices_by_name
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
)
from tests.annotation.hits.criteria import NAMES, create_campaign_with_criteria, criteria_settings, submit_by_criterion
from tests.quality.people import annotator_behaviour
from tests.unsaved import unsaved

SAME = 0.5


async def answered(engine, campaign, people, rng, *, rounds=14):
    """Everybody answers a HIT in each round, until they get none; `people` say of a true value what they answer and how
    many seconds they take.
    """
    truth, time = np.linspace(0, 1, 40), NOW
    here = {name: await create_annotator(engine, campaign, name) for name in people}
    for _ in range(rounds):
        for name, (says, seconds) in people.items():
            work = await find_or_lease_next_hit(engine, here[name], now=time)
            if work.hit is None:
                continue
            time += timedelta(seconds=seconds)
            given = {item: float(np.clip(100 * says(truth[item], rng), 0, 100)) for item in work.hit.items}
            async with borrow_autocommit_driver(engine) as connection:
                await submission.store_answer_of_hit_and_return_receipt(
                    connection, here[name], work.hit.id, Answer(given), now=time
                )
    return here, time


def careful(truth, rng):
    return truth + 0.1 * rng.standard_normal()


def always_the_same(_truth, _rng):
    return SAME


PEOPLE = {f"careful {k}": (careful, 25) for k in range(6)} | {"straight": (always_the_same, 25)}


async def stored_findings(engine):
    return await fetch_rows(
        engine, "SELECT name, rule, action FROM findings f JOIN named_annotators a ON a.id = annotator_id ORDER BY f.id"
    )


async def new_findings(engine, campaign, now):
    seen = await scan_annotators_and_record_findings(engine, campaign.id, now=now)
    assert seen is not None
    return seen.new_findings


@pytest.fixture
def rng():
    return np.random.default_rng(4)


async def watched(engine, rng, judgments=15, **settings):
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=judgments, **settings)
    here, time = await answered(engine, campaign, PEOPLE, rng)
    return campaign, here, time


async def test_by_the_usual_preset_rules_warn_and_everybody_goes_on(engine, rng):
    campaign, here, time = await watched(engine, rng)
    assert await new_findings(engine, campaign, time) == 4
    assert set(await stored_findings(engine)) == {
        ("A7", rule, "warn") for rule in ("straight_lining", "middle", "agreement", "signs")
    }
    assert (await find_or_lease_next_hit(engine, here["straight"], now=time)).hit is not None
    assert await fetch_value(engine, "SELECT count(*) FROM alerts") == 0
    said = await fetch_value(engine, "SELECT said FROM findings WHERE rule = 'straight_lining'")
    assert said.startswith("69 of 69 answers are like the previous one (100 %)")


async def test_strict_rules_hold_who_gets_no_further_hit_while_others_do(engine, rng):
    campaign, here, time = await watched(engine, rng, quality_preset="strict", judgments=30)
    await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    work = await find_or_lease_next_hit(engine, here["straight"], now=time)
    assert (work.hit, work.reason, work.is_finished) == (None, "held", True)
    assert (await find_or_lease_next_hit(engine, here["careful 1"], now=time)).hit is not None
    assert await fetch_rows(engine, "SELECT kind, about FROM alerts") == [("held", "A7")]
    log = "SELECT who, about FROM audit_log WHERE action = 'answers.hold'"
    assert await fetch_rows(engine, log) == [("rule straight_lining", "A7")]
    assert await fetch_value(engine, "SELECT count(*) FROM decisions") == 0


async def test_a_rule_that_excludes_leaves_the_answers_out(engine, rng):
    campaign, _, time = await watched(engine, rng, quality_rules=["straight_lining: exclude"])
    await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    assert await fetch_rows(
        engine, "SELECT kind, revision FROM decisions d JOIN campaigns c ON c.id = campaign_id"
    ) == [("exclude", 1)]
    told = "SELECT barred, barred_by, barred_at FROM annotators WHERE worker_id = 'straight'"
    assert await fetch_rows(engine, told) == [("excluded", "rule straight_lining", time)]


async def test_what_was_found_is_found_once(engine, rng):
    campaign, _, time = await watched(engine, rng)
    first = await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    again = await scan_annotators_and_record_findings(engine, campaign.id, now=time, last_position=first)
    assert [scan_once and scan_once.new_findings for scan_once in (first, again)] == [4, 0]
    assert await new_findings(engine, campaign, time) == 0


async def test_one_who_guesses_and_finishes_early_is_found_once_enough_others_have_answered(engine, rng):
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=15)
    early = {"guesser": (lambda _, rng: rng.random(), 25), "careful 0": (careful, 25), "careful 1": (careful, 25)}
    _, time = await answered(engine, campaign, early, rng)
    position = await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    assert await stored_findings(engine) == []
    _, time = await answered(engine, campaign, {f"careful {k}": (careful, 25) for k in range(2, 8)}, rng)
    await scan_annotators_and_record_findings(engine, campaign.id, now=time, last_position=position)
    assert ("A1", "agreement", "warn") in await stored_findings(engine)
    assert {name for name, _, _ in await stored_findings(engine)} == {"A1"}


async def test_of_two_looks_at_once_one_is_enough(engine, rng):
    campaign, _, time = await watched(engine, rng)
    looks = await asyncio.gather(
        *(scan_annotators_and_record_findings(engine, campaign.id, now=time) for _ in range(3))
    )
    assert sum(scan_once.new_findings for scan_once in looks if scan_once) == len(await stored_findings(engine)) == 4


async def test_no_rule_looks_where_they_are_off(engine, rng):
    campaign, _, time = await watched(engine, rng, quality_preset="off")
    assert await new_findings(engine, campaign, time) == 0


async def test_answers_that_come_close_together_lead_to_one_look_in_the_background(engine, rng):
    campaign, _, _ = await watched(engine, rng)

    async def clock():
        return NOW

    looks = CampaignMonitor(engine, clock, (scan_annotators_and_record_findings,), pause=0.01)
    for _ in range(50):
        looks.request_scan(campaign.id)
    await looks.tasks.wait()
    assert len(await stored_findings(engine)) == 4
    assert len(looks.tasks) == 0


async def test_a_look_knows_what_the_last_one_saw_also_after_one_that_failed_or_left_it_to_another_process(engine):
    heard, outcomes = [], ["first", ValueError("broken"), None, "second"]

    async def scan_once(_engine, _campaign, *, now, last_position):
        heard.append(last_position)
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def clock():
        return NOW

    looks = CampaignMonitor(engine, clock, (scan_once,), pause=0.001)
    looks.request_scan(7)
    await looks.tasks.wait()
    looks.request_scan(7)
    await looks.tasks.wait()
    assert heard == [None, "first", "first", "first"]
    assert looks.positions == {(7, 0): "second"}


async def test_a_look_that_fails_is_made_again_and_keeps_no_other_one_from_being_made(engine, caplog):
    problems, made = [TypeError(), ConnectionRefusedError()], []

    async def breaks(*_, **__):
        if problems:
            raise problems.pop()
        return "seen"

    async def works(*_, **__):
        made.append(1)
        return "seen"

    async def clock():
        return NOW

    looks = CampaignMonitor(engine, clock, (breaks, works), pause=0.001)
    looks.request_scan(7)
    await looks.tasks.wait()
    assert (problems, len(made)) == ([], 3)
    assert looks.tasks.health_check_result().ok
    assert "scans: failed for 7" in caplog.text


@pytest.mark.parametrize(("processes", "pause"), [(1, 20), (3, 60)])
async def test_all_processes_together_look_for_at_most_a_twentieth_of_the_time(engine, monkeypatch, processes, pause):
    now, pauses = [0.0], []

    async def take_a_second(*_, **__):
        now[0] += 1
        if now[0] == 1:
            looks.request_scan(7)  # an answer came meanwhile
        return "seen"

    async def clock():
        return NOW

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(rule_monitor, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(rule_monitor, "asyncio", SimpleNamespace(sleep=sleep))
    looks = CampaignMonitor(engine, clock, (take_a_second,), pause=0.001, processes=processes)
    looks.request_scan(7)
    await looks.tasks.wait()
    assert pauses == [0.001, pause]


async def test_what_a_law_learns_of_answers_at_random_is_known_to_the_rules(engine, rng):
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=15, update_law="easl-aware")
    people = {f"careful {k}": (careful, 25) for k in range(6)} | {"random": (lambda _, rng: rng.random(), 25)}
    await answered(engine, campaign, people, rng)
    async with engine.begin() as connection:
        now = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        conducts = inputs.build_behaviours_by_annotator(
            now.design, await inputs.load_rule_inputs(connection, now.criteria[0])
        )
    chances = [conducts[number].random_answer_probability for number in sorted(conducts)]
    assert max(chances[:-1]) < 0.001 < chances[-1]


def test_a_line_that_is_no_rule_is_refused_and_says_why(subtests):
    for line, problem in (
        ("gold", "not a line such as"),
        ("silver: hold", "there is no rule “silver”"),
        ("gold: shout", "“shout” is not an action"),
        ("gold.careful_percent: many", "gold.careful_percent"),
        ("gold.patience: 3", "gold.patience"),
        ("gold.careful_percent: 100", "less than or equal to 99"),
    ):
        with subtests.test(line=line, problem=problem), pytest.raises(ValueError, match=problem):
            CampaignSettings(name="n", question="q", quality_rules=[line])


def test_lines_win_over_the_preset():
    lines = ["gold: exclude", "gold.careful_percent: 30", "middle: nothing"]
    campaign = unsaved(quality_preset="strict", quality_rules=lines)
    chosen = active_rule_choices_by_name(campaign)
    assert chosen["gold"] == (FailedGoldRule(careful_percent=30), "exclude")
    assert chosen["ends"].action == "hold"
    assert "middle" not in chosen


async def test_each_criterion_is_looked_at_and_named(engine, rng):
    campaign = await create_campaign_with_criteria(engine, items=40, judgments_per_item=15, quality_preset="strict")
    here, time = {name: await create_annotator(engine, campaign, name) for name in PEOPLE}, NOW
    truth = np.linspace(0, 1, 40)
    for name, (says, seconds) in [*PEOPLE.items()] * 14:
        work = await find_or_lease_next_hit(engine, here[name], now=time)
        if work.hit is not None:
            time += timedelta(seconds=seconds)
            said = [
                [float(np.clip(100 * scan_once(truth[item], rng), 0, 100)) for item in work.hit.items]
                for scan_once in (careful, says)
            ]
            await submit_by_criterion(engine, here[name], work.hit, dict(zip(NAMES, said, strict=False)))
    await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    rows = await fetch_rows(
        engine, "SELECT DISTINCT name, said FROM findings f JOIN named_annotators a ON a.id = annotator_id"
    )
    assert {(name, said.partition(":")[0]) for name, said in rows} == {("A7", "fluency")}


def test_criteria_share_the_false_alarms_of_a_rule_and_what_is_no_matter_of_values_is_looked_at_once():
    alarms: dict[str, list[float]] = {name: [] for name in ("gold", "agreement")}

    def watching(name, rule):
        def looks(self, conduct, others, alarm):
            alarms[name].append(alarm)
            return RuleAssessment("unknown", "")

        return type(name, (rule,), {"assess_annotator": looks})()

    chosen = {
        "gold": RuleChoice(watching("gold", FailedGoldRule), "warn"),
        "agreement": RuleChoice(watching("agreement", AgreementWithOthers), "warn"),
    }
    rows = {"seq": [1, 1], "annotator": [1, 1], "item": [0, 1], "value": [10.0, 20.0]}
    record = inputs.RuleInputs({name: np.array(row) for name, row in rows.items()}, inputs.NO_SECONDS, {})
    for criterion in unsaved(criteria=criteria_settings(2), false_alarms=4).criteria:
        find_annotators_by_rules(criterion, record, chosen)
    assert alarms == {"gold": [0.004], "agreement": [0.002, 0.002]}


def test_all_annotators_are_assessed_but_those_of_whom_the_rule_has_a_finding():
    careless = annotator_behaviour([], gold_met=np.zeros(9, bool))
    people = {7: careless, 8: annotator_behaviour([], gold_met=np.ones(9, bool)), 9: careless}
    chosen = RuleChoice(FailedGoldRule(), "warn")
    states = [
        {
            one.annotator_id: one.assessment.state
            for one in iterate_assessments_by_rule("gold", chosen, people, 0.002, **options)
        }
        for options in ({}, {"known": {(7, "gold"), (9, "agreement")}}, {"annotator_ids": {8}})
    ]
    assert states == [{7: "flagged", 8: "fine", 9: "flagged"}, {8: "fine", 9: "flagged"}, {8: "fine"}]


async def test_of_many_annotators_the_early_ones_are_looked_at_again_as_judgments_grow(engine, rng, monkeypatch):
    monkeypatch.setattr(run_rules, "MAX_ANNOTATORS_ALWAYS_ASSESSED", 2)
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=15)
    early = {"guesser": (lambda _, rng: rng.random(), 25)} | {f"careful {k}": (careful, 25) for k in range(5)}
    _, time = await answered(engine, campaign, early, rng, rounds=8)
    position = await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    assert position
    full = position.assessed_judgments
    assert full == 6 * 8 * 5
    _, time = await answered(engine, campaign, {"one more": (careful, 25)}, rng, rounds=2)
    position = await scan_annotators_and_record_findings(engine, campaign.id, now=time, last_position=position)
    assert position
    assert position.assessed_judgments == full  # 4 % more: only those with new answers
    _, time = await answered(engine, campaign, {"another": (careful, 25)}, rng, rounds=4)
    position = await scan_annotators_and_record_findings(engine, campaign.id, now=time, last_position=position)
    assert position
    assert position.assessed_judgments == full + 6 * 5  # 12 % more: everyone


async def test_of_many_annotators_all_are_assessed_a_last_time_when_their_campaign_stops(engine, rng, monkeypatch):
    monkeypatch.setattr(run_rules, "MAX_ANNOTATORS_ALWAYS_ASSESSED", 2)
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=15)
    _, time = await answered(engine, campaign, {f"careful {k}": (careful, 25) for k in range(6)}, rng, rounds=8)
    position = await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    _, time = await answered(engine, campaign, {"one more": (careful, 25)}, rng, rounds=2)
    position = await scan_annotators_and_record_findings(engine, campaign.id, now=time, last_position=position)
    assert position
    assert (position.assessed_judgments, position.is_complete) == (240, False)
    await execute_sql(engine, "UPDATE campaigns SET status = 'finished'")
    position = await scan_annotators_and_record_findings(engine, campaign.id, now=time, last_position=position)
    assert position
    assert (position.assessed_judgments, position.is_complete) == (250, True)
    monkeypatch.setattr(inputs, "load_rule_inputs", None)  # nothing more to read
    assert await scan_annotators_and_record_findings(engine, campaign.id, now=time, last_position=position)


async def test_a_look_that_stops_the_campaign_is_followed_by_another_one(engine):
    positions = [GoalScanState(None, has_stopped_campaign=True), GoalScanState(None)]

    async def scan_once(_engine, _campaign, *, now, last_position):
        return positions.pop(0)

    async def clock():
        return NOW

    looks = CampaignMonitor(engine, clock, (scan_once,), pause=0.001)
    looks.request_scan(7)
    await looks.tasks.wait()
    assert not positions
