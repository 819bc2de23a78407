"""Check that the quotas of a campaign admit as many people as it needs. Pure."""

from app.annotation.onboarding.entry_questions import EntryQuestion, parse_question_lines
from app.annotation.onboarding.quotas import parse_quota_lines
from app.campaigns.totals import CampaignTotals
from app.designs.campaign import Campaign
from app.errors import join_with_and


def quota_shortage_or_empty(campaign: Campaign, totals: CampaignTotals) -> str:
    """Return a sentence per question whose quotas admit fewer people than all judgments need; empty if none does."""
    needed = totals.people.at_least if totals.people else totals.different_people
    if not campaign.quotas or not needed:
        return ""
    questions = parse_question_lines(campaign.questions)
    places_by_question: dict[str, dict[str, int]] = {}
    for quota in parse_quota_lines(campaign.quotas, questions):
        places_by_question.setdefault(quota.question, {})[quota.answer] = quota.limit
    return " ".join(
        sentence_on_shortage(question, places_by_question[question.name], needed)
        for question in questions
        if sum(places_by_question.get(question.name, {0: needed}).values()) < needed
    )


def sentence_on_shortage(question: EntryQuestion, places_by_answer: dict[str, int], needed: int) -> str:
    """Return that all judgments need more people than have a place, and which answers have no quota."""
    places = sum(places_by_answer.values())
    sentence = f"The quotas of “{question.question}” admit {places:,} people, but all judgments need {needed:,}"
    others = [
        f"“{choice}”"
        for choice in question.choices
        if choice not in places_by_answer and not question.screens_out(choice)
    ]
    if question.only_if:
        others.append("people who are not asked")
    return f"{sentence}: the others can only be {join_with_and(others)}." if others else f"{sentence}."
