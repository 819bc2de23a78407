"""What annotators say of items that they cannot judge, where their campaign lets them: a reason from its list."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.designs.answer import Answer
from app.errors import Invalid, listed

FIELD = "unjudged-"
YES = "yes"  # what a form sends where the list of reasons is empty
EXTRA_CHECKS = "checks_cannot_be_judged"  # the same by the number of a check, for the annotator's own page alone
EXTRA = "cannot_be_judged"  # what `responses.extra` calls it: by item number the reason, empty where there are none


def unjudged_in(form: Mapping[str, str], items: Sequence[int]) -> dict[int, str]:
    """From a form's fields `unjudged-NAME`: the reason by item; an empty field says nothing."""
    said = {item: form.get(f"{FIELD}{item}", "").strip() for item in items}
    return {item: reason for item, reason in said.items() if reason}


def refuse_unoffered(campaign: Any, answer: Answer, items: Sequence[int]) -> None:
    """Raises `Invalid` for what the campaign does not let annotators say: `reason_missing`, `reason_unknown`, and
    `invalid`, as for anything else in the place of a value.
    """
    for item, reason in answer.unjudged.items():
        if not campaign.cannot_be_judged:
            said = "In this campaign every item is judged. Nothing was stored."
            raise Invalid(said, code="invalid", fields={"values": said})
        if reason in (campaign.unjudged_reasons or ("", YES)):
            continue
        place = items.index(item) + 1 if item in items else 0
        known = f"one of {listed(campaign.unjudged_reasons)}" if campaign.unjudged_reasons else "left out"
        raise Invalid(
            f"The reason why item {place} cannot be judged must be {known}. What you entered is kept.",
            code="reason_unknown" if reason else "reason_missing",
            position=place,
        )


def said(campaign: Any, answer: Answer) -> dict[str, dict[str, str]]:
    """What lies of it beside the values of an answer; nothing where nobody said so."""
    told = {EXTRA: answer.unjudged, EXTRA_CHECKS: answer.unjudged_checks}
    return {
        name: {str(number): reason if campaign.unjudged_reasons else "" for number, reason in reasons.items()}
        for name, reasons in told.items()
        if reasons
    }
