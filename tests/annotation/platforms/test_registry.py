"""Promises of every platform, so also of the next one."""

import re
from urllib.parse import parse_qsl

import pytest

from app.annotation.platforms.platform import Arrival, Completion, Platform
from app.annotation.platforms.registry import (
    PLATFORMS,
    annotator_url_by_platform,
    detect_platform_and_result_format,
    open_link_url_of_campaign,
    platforms_and_formats_of_result_files,
    platforms_with_pages,
)
from app.annotation.platforms.settings import RETURN_SETTING_NAMES
from app.campaigns.settings import CampaignSettings
from app.campaigns.settings_edits import SETTINGS_EDITABLE_AFTER_LAUNCH
from app.errors import Invalid
from app.settings import Settings
from tests.annotation.hits.campaigns import create_running_campaign, fetch_value

ALL = pytest.mark.parametrize("platform", PLATFORMS.values(), ids=PLATFORMS)
PAGES = pytest.mark.parametrize("platform", platforms_with_pages(), ids=lambda platform: platform.name)
SETTINGS = Settings()


def somebody(platform: Platform) -> dict[str, str]:
    """Return the parameters of an arriving visitor."""
    return {name: f"{name.lower()}-1" for name in platform.identifiers.names}


def arrival_of(platform: Platform, parameters: dict[str, str]) -> Arrival | None:
    return platform.parse_arrival_or_none(list(parameters.items()), SETTINGS)


def refusal_of(platform: Platform, parameters: dict[str, str]) -> Invalid | None:
    """Return why a visitor cannot arrive like this; None for a page that needs no IDs, such as a preview."""
    try:
        assert arrival_of(platform, parameters) is None
    except Invalid as refusal:
        return refusal
    return None


@ALL
def test_its_name_is_its_key_and_the_start_of_an_address(platform):
    assert PLATFORMS[platform.name] is platform
    assert re.fullmatch("[a-z]+", platform.name)
    assert platform.entry_path("key") == f"/{platform.name}/key"
    assert platform.title


@ALL
def test_whoever_starts_here_stays_here(platform):
    assert not (platform.has_start_button and platform.has_return_page)
    assert platform.has_page or not (platform.has_start_button or platform.has_return_page or platform.frame_origins)


@ALL
def test_who_comes_is_told_by_its_identifiers_alone(platform):
    known = arrival_of(platform, somebody(platform))
    assert (known is None) is (not platform.identifiers.names)
    if known:
        assert known.worker_id
        assert known.assignment_id
        assert arrival_of(platform, somebody(platform) | {"another": "thing"}) == known


@ALL
def test_without_one_of_them_nobody_comes_and_both_sides_are_told_why(platform):
    for name in platform.identifiers.names:
        refusal = refusal_of(platform, {other: it for other, it in somebody(platform).items() if other != name})
        if refusal:
            assert (refusal.code, refusal.details["parameter"]) == ("arrival_incomplete", name)
            assert refusal.details["for_researcher"]


@ALL
def test_its_link_as_a_researcher_copies_it_names_nobody(platform):
    query = dict(parse_qsl(platform.link_parameters.removeprefix("?")))
    assert set(query) <= set(platform.identifiers.names)
    refusal = refusal_of(platform, query)
    assert refusal is None or refusal.code == ("arrival_placeholder" if query else "arrival_incomplete")


@ALL
def test_people_return_to_an_address_to_which_the_page_may_lead(platform):
    known = arrival_of(platform, somebody(platform))
    completion = platform.build_completion(
        known.details if known else {}, dict.fromkeys(RETURN_SETTING_NAMES, "C0DE"), "completed"
    )
    assert (completion == Completion()) is (not platform.has_page)
    if completion.url:
        assert completion.url.startswith("https://")
        assert completion.label
    if completion.fields:
        assert str(completion.url).startswith(platform.form_origins(SETTINGS))


def test_ways_back_are_optional_and_a_launch_leaves_them_open(subtests):
    for name in RETURN_SETTING_NAMES:
        with subtests.test(name=name):
            assert CampaignSettings.model_fields[name].default is None
            assert name in SETTINGS_EDITABLE_AFTER_LAUNCH


@ALL
@pytest.mark.parametrize("outcome", ["failed_checks", "screened_out", "nothing_left"])
def test_who_has_not_done_the_work_gets_no_code_of_those_who_have(platform, outcome):
    known = arrival_of(platform, somebody(platform))
    chosen = dict.fromkeys(RETURN_SETTING_NAMES) | {"prolific_completion_code": "D0NE", "return_completed": "D0NE"}
    assert "D0NE" not in str(platform.build_completion(known.details if known else {}, chosen, outcome))


def test_anybody_can_start_by_the_public_link():
    links = annotator_url_by_platform("http://easel.test", "key", platforms_with_pages())
    assert open_link_url_of_campaign("http://easel.test", "key") in links.values()


def test_no_result_file_is_of_two_platforms():
    """Nobody who imports a file has to say whose it is."""
    headers = [["Input.id1", "Answer.range1", "WorkerId"], ["Answer.range1"], ["hit", "annotator", "item", "value"]]
    for columns in headers:
        assert [it for it, files in platforms_and_formats_of_result_files() if files.has_known_column(columns)] == [
            detect_platform_and_result_format(columns)[0]
        ]


@PAGES
async def test_an_address_without_ids_shows_a_page_and_stores_nothing(app, client, platform):
    campaign = await create_running_campaign(app.state.database)
    reply = await client.get(platform.entry_path(campaign.link_key))
    expected_status = 404 if platform.set_up_by_campaign else 422 if refusal_of(platform, {}) else 200
    assert reply.status_code == expected_status
    assert await fetch_value(app.state.database, "SELECT count(*) FROM annotators") == 0
