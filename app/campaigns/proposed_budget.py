"""Budget that a campaign needs for its rewards, for the pages that ask for it."""

from app.campaigns.totals import PeopleNeeded
from app.payments.money import hundredths_text
from app.record.campaign import CountedCampaign


def proposed_budget_text_or_empty(campaign: CountedCampaign) -> str:
    """Return the rewards of all people whom the campaign needs; empty if the settings do not say them."""
    people = PeopleNeeded.people_needed_or_none(campaign)
    return hundredths_text(round(people.at_most * people.reward * 100)) if people and people.reward else ""
