"""Downloads are named by campaign, kind and date, so that no two different files share a name."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.http.dependencies import content_disposition_headers, get_now
from tests.annotation.hits.criteria import create_campaign_with_criteria
from tests.campaigns.drafts import create_launched_campaign, import_results

LATE = datetime(2026, 1, 6, 1, 30, tzinfo=timezone(timedelta(hours=3)))  # the 5th in UTC
ANSWERS = "hit,annotator,item,value\n" + "".join(
    f"h{k},{who},v{k},{10 * k}\nh{k},{who},v{k + 1},{90 - k}\n" for who in ("Ann", "Ben") for k in range(5)
)


@pytest.fixture(autouse=True)
def late(app):
    """Set a time that is already the next day here, but not yet in UTC."""

    async def now():
        return LATE

    app.dependency_overrides[get_now] = now
    yield
    del app.dependency_overrides[get_now]


async def name_of(client, address):
    reply = await client.get(address)
    assert reply.status_code == 200, reply.text
    return reply.headers["content-disposition"].partition('filename="')[2].rstrip('"')


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("export/items.csv", "verbs-items-2026-01-05.csv"),
        ("export/items.xl.csv", "verbs-items-excel-2026-01-05.csv"),
        ("export/responses.jsonl", "verbs-responses-2026-01-05.jsonl"),
        ("export/unanswered.xl.csv", "verbs-unanswered-excel-2026-01-05.csv"),
        ("export/scores.xl.csv", "verbs-scores-excel-2026-01-05.csv"),
        ("export/settings.json", "verbs-settings-2026-01-05.json"),
        ("export/easl.csv", "verbs-easl-2026-01-05.csv"),
        ("campaign.yaml", "verbs-campaign-2026-01-05.yaml"),
        ("log.csv", "verbs-log-2026-01-05.csv"),
        ("people.csv", "verbs-people-2026-01-05.csv"),
        ("figures/distribution.svg", "verbs-distribution-2026-01-05.svg"),
    ],
)
async def test_a_download_is_named_by_campaign_kind_and_date_in_utc(researcher, engine, address, name):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, ANSWERS)
    assert await name_of(researcher, f"/admin/campaigns/{campaign.slug}/{address}") == name


async def test_programs_get_files_of_the_same_names(api_client, engine):
    campaign = await create_launched_campaign(engine)
    address = f"/api/v1/campaigns/{campaign.slug}"
    assert await name_of(api_client, f"{address}/export/items?spreadsheet=true") == "verbs-items-excel-2026-01-05.csv"
    assert await name_of(api_client, f"{address}/export/items?format=jsonl") == "verbs-items-2026-01-05.jsonl"
    assert await name_of(api_client, f"{address}/file") == "verbs-campaign-2026-01-05.yaml"


async def test_the_criterion_of_a_file_is_in_its_name(researcher, engine):
    campaign = await create_campaign_with_criteria(engine)
    criterion = campaign.criteria[1].name
    name = await name_of(researcher, f"/admin/campaigns/{campaign.slug}/export/easl.csv?criterion={criterion}")
    assert name == f"{campaign.slug}-easl-{criterion}-2026-01-05.csv"


def test_a_name_has_only_letters_that_every_system_takes():
    headers = content_disposition_headers(
        "verbs", "scores", "csv", 'Größe "x"/..', now=datetime(2026, 1, 5, tzinfo=UTC)
    )
    assert headers == {"Content-Disposition": 'attachment; filename="verbs-scores-gr-e-x-2026-01-05.csv"'}
