"""Forecast of a campaign: what its goal will cost in judgments, HITs, time and money, in sentences and as a curve."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

import numpy as np

from app.analysis.chart_axes import LinearScale, choose_round_tick_step
from app.campaigns.forecast_findings import ForecastFindings
from app.campaigns.totals import cost_range_text, costs_of_judgments
from app.errors import pluralize
from app.http.languages.catalogue import ENGLISH, format_money
from app.planning.forecast_defaults import DEFAULT_ANNOTATORS_IN_TOTAL
from app.planning.goal_simulation import BAND_PERCENTILES, GoalForecast
from app.record import pace
from app.record.campaign import CountedCampaign

CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM = 64, 616, 16, 232  # ends of the axes in a drawing 640 wide


@dataclass(frozen=True)
class BudgetChoice:
    """A number of judgments per item that the campaign may ask for.

    Attributes:
        judgments_per_item: The number.
        x: Its place on the curve, in SVG units.
        sentence: The chance to reach the goal with it, and what it costs from now on.

    """

    judgments_per_item: int
    x: float
    sentence: str


@dataclass(frozen=True)
class CampaignForecast:
    """Forecast cost of a campaign's goal, with the sentences and the curve that describe it.

    Attributes:
        goal: The goal in words.
        simulated_items: Number of items simulated.
        judgments: Judgments so far.
        judgments_wanted: Judgments in all at which the campaign ends.
        judgments_per_item: Judgments of each item at which it ends.
        judgments_per_hit: Judgments that a HIT brings on average.
        minutes_per_hit: Minutes that a HIT takes, if known.
        hits_per_hour: HITs answered per hour now; None if no annotator answers now.
        concurrent_annotators: Annotators at a time, for a campaign that no annotator answers yet.
        made_at: When the forecast was made.
        goal_forecast: Result of the simulated campaigns.
        annotators: Number of annotators in all.
        annotators_note: Where that number comes from, as a sentence.
        caution: Caution about the forecast, as a sentence.
        campaign_with_rewards: The campaign if its platform pays each person one reward; None if tasks are paid.
        noun: Word for what gets a score: "item" or "system".

    """

    goal: str
    item_count: int
    simulated_items: int
    judgments: int
    judgments_wanted: int
    judgments_per_item: int
    judgments_per_hit: float
    minutes_per_hit: float | None
    pay_per_hit: float | None
    currency: str
    hits_per_hour: float | None
    concurrent_annotators: int
    made_at: datetime
    goal_forecast: GoalForecast
    annotators: int = DEFAULT_ANNOTATORS_IN_TOTAL
    annotators_note: str = ""
    caution: str = ""
    campaign_with_rewards: CountedCampaign | None = None
    noun: str = "item"

    @property
    def simulated_judgments_per_item(self) -> int:
        """Judgments of each item at which the simulated campaigns end."""
        return int((self.judgments + self.goal_forecast.checkpoints[-1]) / self.item_count)

    @property
    def sentence_on_judgments_needed(self) -> str:
        """Text on how many more judgments are needed, with the band."""
        middle, low, high = self.goal_forecast.median_and_band_of_judgments_needed
        if middle == 0:
            return "The goal is reached."
        if middle == float("inf"):
            if self.goal_forecast.ran_out.mean() > 1 / 2:
                return "There are not enough annotators to reach the goal."
            return (
                f"The goal needs more than {self.simulated_judgments_per_item:,} judgments per {self.noun}. Choose an "
                "easier goal or the selection rule that suits it, or find more annotators."
            )
        most = f"{high:,.0f}" if high != float("inf") else "many more"
        return f"About {pluralize(round(middle), 'more judgment')} ({low:,.0f} to {most})"

    @property
    def annotators_run_out_warning_or_empty(self) -> str:
        """Warning that the annotators run out before the goal; empty where they never do."""
        if not (often := np.count_nonzero(self.goal_forecast.ran_out)):
            return ""
        reason = f"the {pluralize(self.annotators, 'annotator')} run out of tasks before the goal is reached"
        advice = "Find more annotators, or let each of them answer more."
        return f"In {often} of {pluralize(len(self.goal_forecast.ran_out), 'simulated campaign')}, {reason}. {advice}"

    @property
    def sentence_on_judgments_per_item(self) -> str:
        """Sentence on how many judgments per item to ask for, with their costs, or on why no number is enough."""
        enough = self.sufficient_judgments_per_item_or_none
        if self.goal_forecast.median_and_band_of_judgments_needed[0] == 0 or enough is None:
            return f"{self.sentence_on_judgments_needed.rstrip('.')}."
        costs = ", ".join(self.phrases_on_tasks_hours_and_pay(enough * self.item_count - self.judgments))
        budget = f"{pluralize(enough, 'judgment')} per {self.noun}"
        return f"With {budget}, 9 of 10 campaigns like this one reach the goal: {costs}."

    @property
    def phrases_on_costs_of_median_run(self) -> list[str]:
        """Costs of the median simulated campaign in HITs, hours of work and money, as far as these are known."""
        middle = self.goal_forecast.median_and_band_of_judgments_needed[0]
        return [] if middle in {0.0, float("inf")} else self.phrases_on_tasks_hours_and_pay(middle)

    def phrases_on_tasks_hours_and_pay(self, judgment_count: float) -> list[str]:
        """Return what so many more judgments cost in HITs, hours of work and money, as far as these are known."""
        hits = judgment_count / self.judgments_per_hit
        costs = [pluralize(round(hits), "task")]
        if self.minutes_per_hit:
            costs.append(f"{hits * self.minutes_per_hit / 60:,.1f} hours of work")
        if self.pay_per_hit and self.campaign_with_rewards:
            rewards = costs_of_judgments(self.campaign_with_rewards, round(judgment_count))
            costs.append(cost_range_text(rewards, self.currency))
        elif self.pay_per_hit:
            costs.append(format_money(hits * self.pay_per_hit, self.currency, ENGLISH))
        return costs

    @property
    def campaign_ends_before_goal_warning_or_empty(self) -> str:
        """Warning that the campaign may end before its goal; empty where it asks for enough judgments."""
        judgments_left = max(0, self.judgments_wanted - self.judgments)
        middle, _, high = self.goal_forecast.median_and_band_of_judgments_needed
        if high <= judgments_left:
            return ""
        judgments = f"{pluralize(self.judgments_per_item, 'judgment')} of each {self.noun}"
        advice = f"Collect more judgments per {self.noun}, or choose an easier goal."
        if not judgments_left:
            return f"This campaign has {judgments}, as many as it asks for, and has not reached its goal. {advice}"
        is_unlikely = middle > judgments_left and self.goal_forecast.checkpoints[-1] >= judgments_left
        chance = "will probably not have reached" if is_unlikely else "may not have reached"
        return (
            f"This campaign ends at {judgments}, after {judgments_left:,} more, and {chance} its goal by then. {advice}"
        )

    @property
    def sufficient_judgments_per_item_or_none(self) -> int | None:
        """Judgments of each item that suffice for nine of ten simulated campaigns; None where no number does."""
        high = self.goal_forecast.median_and_band_of_judgments_needed[2]
        return None if high == float("inf") else ceil((self.judgments + high) / self.item_count)

    @property
    def findings(self) -> ForecastFindings:
        """Findings that the launch page repeats."""
        return ForecastFindings(
            self.item_count,
            self.judgments_per_item,
            self.campaign_ends_before_goal_warning_or_empty,
            self.sufficient_judgments_per_item_or_none,
            [
                None if more == float("inf") else self.judgments + round(more)
                for more in self.goal_forecast.median_and_band_of_judgments_needed
            ],
        )

    @property
    def hours_to_goal_or_none(self) -> float | None:
        """Hours by the clock until the goal is reached, at the present pace or with `concurrent_annotators`."""
        middle = self.goal_forecast.median_and_band_of_judgments_needed[0]
        rate = self.hits_per_hour or (
            60 * self.concurrent_annotators / self.minutes_per_hit if self.minutes_per_hit else None
        )
        return None if rate is None or middle in {0.0, float("inf")} else middle / self.judgments_per_hit / rate

    @property
    def time_of_reaching_goal_or_none(self) -> datetime | None:
        """Time at which the goal is reached at the present pace; None where that is unknown."""
        return (
            self.made_at + timedelta(hours=self.hours_to_goal_or_none)
            if self.hours_to_goal_or_none and self.hits_per_hour
            else None
        )

    @property
    def sentence_on_time_until_goal_or_empty(self) -> str:
        """Sentence on how long the goal takes; empty where that is unknown."""
        if self.hours_to_goal_or_none is None:
            return ""
        duration = f"About {pace.format_hours_in_words(self.hours_to_goal_or_none)}"
        if self.hits_per_hour:
            return f"{duration}, at the current pace of {pluralize(round(self.hits_per_hour), 'task')} per hour."
        return f"{duration}, with {pluralize(self.concurrent_annotators, 'annotator')} at the same time."

    @property
    def index_of_last_goal_check_on_curve(self) -> int:
        """The check of the goal at which the curve ends, when nearly all runs have reached it."""
        checkpoints, shares = self.goal_forecast.checkpoints, self.goal_forecast.share_of_runs_at_goal_at_each_check
        end = next(
            (k for k, chance in enumerate(shares) if chance >= 1 - BAND_PERCENTILES[0] / 200), len(checkpoints) - 1
        )
        return max(1, min(end + 1, len(checkpoints) - 1))

    @property
    def judgment_count_at_end_of_curve(self) -> float:
        """Judgments in all at the end of the curve."""
        return self.judgments + float(self.goal_forecast.checkpoints[self.index_of_last_goal_check_on_curve])

    @property
    def budget_choices_on_curve(self) -> list[BudgetChoice]:
        """The numbers of judgments per item that the curve shows, from the fewest above those so far."""
        x = LinearScale(self.judgments, self.judgment_count_at_end_of_curve, CURVE_LEFT, CURVE_RIGHT)
        fewest = max(1, ceil(self.judgments / self.item_count))
        return [
            BudgetChoice(number, x(number * self.item_count), self.sentence_on_budget(number))
            for number in range(fewest, int(self.judgment_count_at_end_of_curve // self.item_count) + 1)
        ]

    def sentence_on_budget(self, judgments_per_item: int) -> str:
        """Return a sentence on how likely the goal is reached with so many judgments per item, and what they cost from
        now on.
        """
        more = judgments_per_item * self.item_count - self.judgments
        chance = float((self.goal_forecast.judgments_needed <= more).mean())
        costs = ", ".join(self.phrases_on_tasks_hours_and_pay(more))
        budget = pluralize(judgments_per_item, "judgment")
        return f"{budget} per {self.noun}: {100 * chance:.0f} % of simulated campaigns reach the goal; {costs}."

    @property
    def chance_curve_svg_data(self) -> dict[str, Any]:
        """Chance that the goal is reached against judgments, in SVG units, until nearly all runs have reached it."""
        checkpoints, shares = self.goal_forecast.checkpoints, self.goal_forecast.share_of_runs_at_goal_at_each_check
        end, last = self.index_of_last_goal_check_on_curve, self.judgment_count_at_end_of_curve
        x, y = LinearScale(self.judgments, last, CURVE_LEFT, CURVE_RIGHT), LinearScale(0, 1, CURVE_BOTTOM, CURVE_TOP)
        step = choose_round_tick_step(last - self.judgments)
        points = zip(checkpoints[: end + 1].tolist(), shares[: end + 1].tolist(), strict=True)
        middle, *band_ends = [
            min(needed, float(checkpoints[end])) for needed in self.goal_forecast.median_and_band_of_judgments_needed
        ]
        tick_values = np.arange(ceil(self.judgments / step) * step, last + 1, step)
        return {
            "points": [(x(self.judgments + more), y(chance)) for more, chance in points],
            "band": [x(self.judgments + more) for more in band_ends],
            "middle": x(self.judgments + middle),
            "now": (x(self.judgments), y(float(shares[0]))),
            "x_ticks": [(x(value), f"{value:,.0f}") for value in tick_values],
            "y_ticks": [(y(share / 4), f"{share * 25} %") for share in range(5)],
        }
