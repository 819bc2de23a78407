"""Quotas that admit fewer people than a campaign needs are named before the launch and beside its links."""

import pytest

from tests.campaigns.drafts import create_draft, import_items
from tests.quality.test_reach import ITEMS, page_of

QUESTIONS = ["gender: Your gender? | female | male | other", "age: Old? | yes | no | screen out: child"]
BOTH = ["gender = female: 1", "gender = male: 1"]


@pytest.mark.parametrize(
    ("quotas", "note"),
    [
        (
            BOTH,
            "The quotas of “Your gender?” admit 2 people, but all judgments need 10: the others can only be “other”.",
        ),
        ([*BOTH, "gender = other: 1"], "The quotas of “Your gender?” admit 3 people, but all judgments need 10."),
        (["age = yes: 2", "age = no: 2"], "The quotas of “Old?” admit 4 people, but all judgments need 10."),
        (["gender = female: 5", "gender = male: 5"], ""),
        ([], ""),
    ],
)
async def test_quotas_that_admit_too_few_people_are_named(engine, researcher, quotas, note):
    needs = {"judgments_per_item": 10, "repeat_items": False}
    campaign = await create_draft(engine, questions=QUESTIONS, quotas=quotas, **needs)
    await import_items(engine, campaign, ITEMS)
    for part in ("launch/confirm", "share"):
        page = await page_of(researcher, campaign, part)
        assert note in page, part
        assert ("The quotas of" in page) is bool(note), part
