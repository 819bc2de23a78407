"""Questions, training and qualification stay readable after the launch, with the reason why they are fixed."""

import re
from typing import Any

import pytest

from tests.annotation.hits.campaigns import create_running_campaign
from tests.campaigns.drafts import create_draft

VISIT: dict[str, Any] = {
    "questions": [
        "mother: What is your language? | German | English | screen out: Other",
        "age?: How old are you? | only if: mother = German | only if: mother = English",
    ],
    "training": 'text,expected,explanation\n"Terrible, never again",5,Very negative\nWonderful,95,\n',
    "consent": "I *agree*.",
}


@pytest.fixture
def engine(app):
    return app.state.database


async def page_of(researcher, campaign):
    return (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/visit")).text


def cells(page, name):
    field = page.partition(f'id="{name}">')[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", field, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


async def test_questions_and_training_are_tables_with_the_reason(researcher, engine):
    page = await page_of(researcher, await create_running_campaign(engine, **VISIT))
    assert cells(page, "questions") == [
        ["Question", "Answer", "Required", "Asked"],
        ["What is your language?", "German · English · Other (screened out)", "yes", "always"],
        ["How old are you?", "text", "no", "only if mother is German or English"],
    ]
    assert cells(page, "training") == [
        ["Text", "Expected", "Explanation"],
        ["Terrible, never again", "5", "Very negative"],
        ["Wonderful", "95", ""],
    ]
    assert "Fixed, so that everyone answers the same questions." in page
    assert "Fixed, so that everyone learns from the same items." in page
    assert '<textarea id="consent"' in page


async def test_in_a_draft_they_are_edited_instead(researcher, engine):
    page = await page_of(researcher, await create_draft(engine, **VISIT))
    assert "Fixed, so that" not in page
    assert '<textarea id="training"' in page


async def test_what_the_campaign_does_not_have_is_a_dash(researcher, engine):
    page = await page_of(researcher, await create_running_campaign(engine))
    training = page.partition('id="training">')[2].partition("</div>")[0]
    assert '<p class="value">–</p>' in training
