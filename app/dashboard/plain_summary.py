"""The state of a campaign in sentences that need no statistics; the cards below them have the figures."""

from app.dashboard.cards import GoalCard, typical_precision_text_or_empty
from app.dashboard.snapshot import CampaignSnapshot
from app.designs.unit import PERCENT_BEATEN_UNIT
from app.errors import pluralize
from app.http.templating import item_noun


def summary_sentences(snapshot: CampaignSnapshot, goal_card: GoalCard) -> list[str]:
    """Return how much is answered, how sure the scores are, and whether this is enough; empty without answers."""
    if not snapshot.judgments.any():
        return []
    sentences = [answered_sentence(snapshot), certainty_sentence(snapshot)]
    if goal_card.is_goal:
        return [*sentences, goal_sentence(goal_card, is_finished=snapshot.campaign.status == "finished")]
    has_order = snapshot.criterion.design.is_ordered and not snapshot.campaign.segment_count
    overlap = "Items whose lines overlap in the table may still change places."
    return [*sentences, overlap] if has_order else sentences


def answered_sentence(snapshot: CampaignSnapshot) -> str:
    """Return who gave how many judgments, and how many an item has on average."""
    annotators, given = int(snapshot.counts.annotators), snapshot.judgment_counts_without_always_shown
    people = "1 person has" if annotators == 1 else f"{annotators:,} people have"
    share = "less than 0.1" if given.mean() < 0.1 else f"{given.mean():.1f}".removesuffix(".0")
    return (
        f"{people} given {pluralize(int(given.sum()), 'judgment')}: on average {share} of the "
        f"{snapshot.campaign.judgments_per_item:,} that each {item_noun(snapshot.campaign)} should get."
    )


def goal_sentence(goal_card: GoalCard, *, is_finished: bool) -> str:
    """Return whether the goal is reached, and so whether to go on unless the campaign is finished."""
    if is_finished:
        return "The goal was reached." if goal_card.is_reached else "The goal was not reached."
    return f"The goal is {'reached, so you can stop' if goal_card.is_reached else 'not reached yet'}."


def certainty_sentence(snapshot: CampaignSnapshot) -> str:
    """Return how far the score of a typical item may move, or how many would choose its likeliest label."""
    precision = typical_precision_text_or_empty(snapshot)
    if not precision:
        return "How sure the scores are cannot be told yet: that takes more judgments of the same items by others."
    if not snapshot.criterion.design.is_ordered:
        return f"For a typical item, about {precision} of people would choose its likeliest label."
    unit = snapshot.criterion.design.unit
    measure = unit.mean_phrase if unit is PERCENT_BEATEN_UNIT else "score"
    return (
        f"The {measure} of a typical {item_noun(snapshot.campaign)} is sure to about {precision}: if many more people "
        "judged it, it would probably stay within that."
    )
