"""Whether a campaign's rules on annotators can find anybody, with the work that one person may do in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from scipy.stats import binom
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.registry import design_of
from app.errors import plural
from app.quality.checks import how_many
from app.quality.evidence import LEAST_OTHERS
from app.quality.rule import QualityRule, RuleNeed
from app.quality.settings import Chosen, chosen_of
from app.record.law import law_of

CHECKED = ("gold", "attention")  # kinds of checks, and the rules about them
HARDLY = 0.001  # chance that one person fails so many checks, below which a rule finds nobody

KINDS = text("SELECT kind, count(*) AS items FROM check_items WHERE campaign_id = :campaign GROUP BY kind")

ANSWERED = text("""
    SELECT count(*) FROM (
        SELECT FROM annotators a WHERE a.campaign_id = :campaign AND EXISTS (
            SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id)
        LIMIT :most) AS some_of_them
""")


@dataclass(frozen=True)
class WorkOfOne:
    """The most that one person may do in a campaign; None where nothing limits it or it is not known yet.

    judged_per_hit: items of a HIT that one judges. checks: HITs with a check of each kind that one can meet; empty
    while that is not known. checks_percent: of HITs that show a check.
    """

    hits: int | None
    judged_per_hit: int
    checks: Mapping[str, int]
    checks_percent: float


@dataclass(frozen=True)
class RuleReach:
    """From when on a rule can speak of somebody, and why it never will, as sentences; `never` is empty where it may.

    too_little: whether that is because one person does too little, and not because the rule is for other campaigns.
    """

    begins: str
    never: str = ""
    too_little: bool = False


async def reach_of_rules(
    connection: AsyncConnection, campaign_id: int, settings: Any, *, items: int
) -> dict[str, RuleReach]:
    """Return the reach of each rule that does something, by its name."""
    rows = await connection.execute(KINDS, {"campaign": campaign_id})
    work = work_of_one(settings, items, {row.kind: row.items for row in rows})
    alarm = settings.false_alarms / 1000
    return {name: reach(one.rule, settings, work, alarm) for name, one in chosen_of(settings).items()}


async def too_few_to_compare(connection: AsyncConnection, campaign_id: int) -> str:
    """Return that rules which compare annotators say nothing yet, as a sentence; empty where enough have answered."""
    needed = 1 + LEAST_OTHERS
    there = await connection.scalar(ANSWERED, {"campaign": campaign_id, "most": needed}) or 0
    if there >= needed:
        return ""
    so_far = f"{there} {'has' if there == 1 else 'have'} answered so far" if there else "nobody has answered yet"
    return f"Rules that compare annotators need {needed} of them; {so_far}."


def work_of_one(settings: Any, items: int | None, checks: Mapping[str, int] | None) -> WorkOfOne:
    """items, checks: how many there are, the latter by kind; None where nobody knows yet."""
    limits = [settings.hits_per_annotator]
    per_hit = settings.items_per_hit - len(design_of(settings).always_shown)
    if not settings.repeat_items and items is not None and not settings.segment_count:
        limits.append(ceil(items / per_hit))
    hits = min((limit for limit in limits if limit is not None), default=None)
    met = {} if checks is None else {kind: checks.get(kind, 0) // how_many(settings) for kind in CHECKED}
    return WorkOfOne(hits, per_hit, met, settings.checks_percent or 0.0)


def reach(rule: QualityRule, settings: Any, work: WorkOfOne, alarm: float) -> RuleReach:
    """alarm: the share of careful people whom the rule may find."""
    design, law = design_of(settings), law_of(settings)
    need = rule.needs(design.yields, alarm)
    if not rule.reads(design.yields, len(design.classes)):
        return RuleReach("", "It says nothing about this kind of answers.")
    if rule.name == "at_random" and not law.layout:
        return RuleReach("", f"The update law {law.name} does not learn who answers at random.")
    begins = f"From {plural(need.count, need.what)} of one person"
    if need.others:
        begins += f", if {LEAST_OTHERS} others have {need.others} or more each"
    begins += "."
    if not need.what.startswith("failed"):
        why = too_little_work(need, work)
        return RuleReach(begins, why, too_little=bool(why))
    kind = need.what.split()[1]
    if not work.checks_percent or work.checks.get(kind, 1) == 0:
        return RuleReach(begins, f"No HIT shows {'an attention' if kind == 'attention' else 'a gold'} item.")
    why = too_few_checks(need, kind, work)
    return RuleReach(begins, why, too_little=bool(why))


def words_on_checks(chosen: Mapping[str, Chosen], hits: int | None, percent: float, false_alarms: float) -> str:
    """Return how many failed checks the rules need of one person, and whether anybody meets so many, for the form.

    chosen: the rules that do something. hits: of one person at most; percent: of HITs that show a check.
    """
    found = {name: chosen[name].rule.needs("points", false_alarms / 1000) for name in CHECKED if name in chosen}
    if not found:
        return ""
    needed = " or ".join(plural(need.count, need.what) for need in found.values())
    work = WorkOfOne(hits, 1, {}, percent)
    never = [too_few_checks(need, name, work) for name, need in found.items()] if percent else []
    return " ".join([f"A rule finds nobody before {needed} of one person.", *filter(None, never)])


def too_little_work(need: RuleNeed, work: WorkOfOne) -> str:
    """Return that nobody can answer so much, as a sentence; empty where somebody can."""
    if work.hits is None or need.what == "implied pair":
        return ""
    most = work.hits * (work.judged_per_hit if need.what == "judgment" else 1)
    if most >= need.count:
        return ""
    are = f" ({plural(most, need.what)})" if need.what != "HIT" else ""
    hits = plural(work.hits, "HIT")
    return f"With {hits} a person{are} this rule cannot find {need.whom}: it needs {plural(need.count, need.what)}."


def too_few_checks(need: RuleNeed, kind: str, work: WorkOfOne) -> str:
    """Return that nobody meets so many checks of a kind, as a sentence; empty where somebody may."""
    there = work.checks.get(kind)
    needs = f"this rule needs {need.count} failed ones: it cannot find anybody."
    if there is not None and there < need.count:
        return f"Of the {kind} items one person meets {there} at most; {needs}"
    if work.hits is None:
        return ""
    of_both = sum(work.checks.values())
    share = work.checks_percent / 100 * (there / of_both if there and of_both else 1)
    if binom.sf(need.count - 1, work.hits, share) >= HARDLY:
        return ""
    expected = max(1, round(work.hits * share))
    meets = plural(expected, f"{kind} item")
    return f"With {plural(work.hits, 'HIT')} a person, everybody meets about {meets}; {needs}"
