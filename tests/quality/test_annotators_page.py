"""The pages of a campaign's annotators."""

import re
from datetime import timedelta

import pytest

from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.test_checks import hits_with_checks, with_checks
from tests.quality.deciding import answer_hits, verify_campaign

REASON = {"reason": "answers at random"}
STORE_FINDING = """
    INSERT INTO findings (campaign_id, annotator_id, rule, action, seen, said, found_at)
    SELECT campaign_id, id, :rule, 'warn', '{}', :said, :now FROM annotators WHERE campaign_id = :campaign
"""


async def test_the_page_lists_annotators_with_figures_and_leads_to_each(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=3, hits=3, items=10)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert re.findall(r'/annotators/(A\d)">', html) == ["A1", "A2", "A3"]
    assert html.count('class="spark"') == 3
    assert ">active<" in html


async def test_who_is_excluded_on_their_page_is_left_out_and_restored_there(engine, researcher):
    campaign, _, _ = await answer_hits(engine)
    address = f"/admin/campaigns/{campaign.slug}/annotators/A1"
    done = await researcher.post(f"{address}/exclude", data=REASON)
    assert (done.status_code, done.headers["location"]) == (303, f"{address}?done=annotator-exclude")
    assert (await verify_campaign(engine, campaign)).responses == 4
    html = (await researcher.get(address)).text
    assert "answers at random" in html
    assert "their answers do not count" in html
    assert f'formaction="{address}/restore"' in html
    assert f'formaction="{address}/hold"' not in html
    await researcher.post(f"{address}/restore", data=REASON)
    assert (await verify_campaign(engine, campaign)).responses == 6
    assert (
        await fetch_rows(engine, "SELECT who, about FROM audit_log WHERE action LIKE 'answers.%'")
        == [("admin", "A1")] * 2
    )


async def test_decisions_stay_on_the_page_and_an_excluded_annotators_answers_offer_no_exclusion(engine, researcher):
    campaign, _, _ = await answer_hits(engine)
    address = f"/admin/campaigns/{campaign.slug}/annotators/A1"
    assert "/answers/" in (await researcher.get(address)).text
    await researcher.post(f"{address}/exclude", data={"reason": "the middle every time"})
    html = (await researcher.get(address)).text
    assert not re.search(r"/answers/\d+/exclude", html)
    await researcher.post(f"{address}/restore", data={"reason": "they meant it"})
    html = (await researcher.get(address)).text
    section = html.partition('id="decisions"')[2].partition("</ul>")[0]
    told = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", section))
    assert re.search(r"admin restored A1, [^“]*“they meant it” ?admin excluded A1, [^“]*“the middle every time”", told)
    assert re.search(r"/answers/\d+/exclude", html)


async def test_who_did_not_agree_or_pass_is_not_said_to_take_part(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=3)
    told = [("consent", 1, "declined"), ("qualification", 1, "failed"), ("consent", 1, "passed")]
    for number, (step, version, outcome) in enumerate(told, start=1):
        await execute_sql(
            engine,
            "INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, taken_at) "
            "SELECT campaign_id, id, :step, :version, :outcome, now() FROM named_annotators WHERE name = :name",
            step=step, version=version, outcome=outcome, name=f"A{number}",
        )  # fmt: skip
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert [html.count(words) for words in ("did not consent", "did not pass the test", ">active<")] == [1, 1, 1]
    assert (
        "This person did not consent." in (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text
    )


async def test_what_somebody_said_of_each_check_stands_on_their_page(engine, researcher):
    campaign = await with_checks(engine)
    (hit,) = await hits_with_checks(engine, campaign)
    (check,) = {"g1", "g2", "a1"} & {*hit.ids}
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text
    section = html.partition("Gold and attention items</h3>")[2].partition("</table>")[0]
    assert f">{check}</th>" in section
    assert "42" in section
    assert "<b>no</b>" in section  # 42 is none of the expected answers


async def test_one_answer_is_excluded_in_its_line_and_marked(engine, researcher):
    campaign, _, _ = await answer_hits(engine)
    seq = await fetch_value(engine, "SELECT min(seq) FROM responses")
    address = f"/admin/campaigns/{campaign.slug}/annotators/A1"
    await researcher.post(f"{address}/answers/{seq}/exclude", data=REASON)
    html = (await researcher.get(address)).text
    assert "excluded, answers at random (admin)" in html
    assert f"{address}/answers/{seq}/restore" in html
    assert (await verify_campaign(engine, campaign)).responses == 5


async def test_a_reason_is_optional_on_the_pages_and_each_decision_is_confirmed(engine, researcher):
    campaign, _, _ = await answer_hits(engine)
    address = f"/admin/campaigns/{campaign.slug}/annotators/A1"
    assert 'name="reason" required' not in (await researcher.get(address)).text
    seq = await fetch_value(engine, "SELECT min(seq) FROM responses")
    for subpage, said in (
        ("hold", "Held. This annotator gets no more tasks."),
        ("release", "Released. This annotator can continue."),
        ("exclude", "Excluded. This annotator gets no more tasks, and their answers do not count."),
        ("restore", "Restored. This annotator can continue, and their answers count again."),
        (f"answers/{seq}/exclude", "Excluded. This answer does not count."),
        (f"answers/{seq}/restore", "Restored. This answer counts again."),
    ):
        done = await researcher.post(f"{address}/{subpage}", data={"reason": " "})
        assert done.status_code == 303, subpage
        page = (await researcher.get(done.headers["location"])).text
        assert said in page, subpage
        assert "no reason given" in page, subpage


async def test_without_a_reason_the_newest_finding_is_the_reason_on_the_page_of_an_annotator_too(engine, researcher):
    campaign, _, _ = await answer_hits(engine)
    for rule, said in (("too_fast", "Answers too fast."), ("attention", "Failed 4 of 4 attention items.")):
        await execute_sql(engine, STORE_FINDING, campaign=campaign.id, rule=rule, said=said, now=NOW)
    address = f"/admin/campaigns/{campaign.slug}/annotators/A1"
    for decision in ("hold", "release", "exclude", "restore"):
        await researcher.post(f"{address}/{decision}", data={"reason": " "})
    reasons = await fetch_rows(
        engine, "SELECT after ->> 'reason' FROM audit_log WHERE action ^@ 'answers.' ORDER BY id"
    )
    finding = "Failed 4 of 4 attention items."
    assert [reason for (reason,) in reasons] == [finding, "no reason given", finding, "no reason given"]


async def test_a_page_of_annotators_of_a_draft_or_of_nobody_says_so(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=0)
    address = f"/admin/campaigns/{campaign.slug}/annotators"
    assert "No annotators yet" in (await researcher.get(address)).text
    assert (await researcher.get(f"{address}/A1")).status_code == 404


async def test_annotators_stand_in_the_order_that_is_asked_for(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=3, hits=1)
    await researcher.post(f"/admin/campaigns/{campaign.slug}/annotators/A3/hold", data=REASON)
    for sort, rising, order in (
        ("name", "", "A1 A2 A3"),
        ("name", "&rising=true", "A3 A2 A1"),
        ("standing", "", "A3 A1 A2"),
    ):
        html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators?sort={sort}{rising}")).text
        assert re.findall(r'/annotators/(A\d)">', html) == order.split()


async def test_by_seconds_annotators_stand_as_their_newest_answers_have_it(engine, researcher):
    campaign, visits, _ = await answer_hits(engine, people=3, hits=1)
    await took(engine, {1: 30, 2: 10, 3: 20})
    address = f"/admin/campaigns/{campaign.slug}/annotators?sort=seconds"
    assert named_in((await researcher.get(address)).text) == ["A1", "A3", "A2"]
    hit = await try_to_lease_hit(engine, visits[1])
    await submit_scores(engine, visits[1], hit)
    await took(engine, {2: 90})
    assert named_in((await researcher.get(address)).text) == ["A2", "A1", "A3"]
    assert named_in((await researcher.get(f"{address}&rising=true")).text) == ["A3", "A1", "A2"]


async def took(engine, seconds):
    """Set the seconds for each answer of the first annotator, the second one, and so on."""
    for place, long in seconds.items():
        await execute_sql(
            engine,
            "UPDATE hits SET issued_at = r.received_at - make_interval(secs => :long) FROM responses r "
            "WHERE r.hit_id = hits.id AND hits.annotator_id = "
            "(SELECT id FROM named_annotators WHERE name = :name)",
            long=long,
            name=f"A{place}",
        )


def named_in(html):
    return re.findall(r'/annotators/(A\d)">', html)


async def test_the_time_in_which_a_hit_was_only_left_open_is_no_work(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=1, hits=10, pay_per_hit=0.2)
    await took(engine, {1: 30})
    left_open = "UPDATE hits SET issued_at = issued_at - interval '5 hours' WHERE id = (SELECT max(id) FROM hits)"
    await execute_sql(engine, left_open)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert ">$24.00<" in page
    assert "left open" in page
    one = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text
    assert "<dt>Pay per hour at work</dt><dd>$24.00</dd>" in one


async def test_someone_who_answers_faster_than_anyone_reads_is_marked_also_where_no_rule_can_compare_them(
    engine, researcher
):
    campaign, _, _ = await answer_hits(engine, people=3, hits=12)
    await took(engine, {1: 10 / 12, 2: 2.4, 3: 20})
    await execute_sql(engine, "UPDATE responses SET source = 'page'")
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    rows = re.findall(r'<th scope="row">.*?</tr>', html, re.DOTALL)
    assert ["faster than reading" in row for row in rows] == [True, True, False]
    assert html.count(">active<") == 3
    pages = [(await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A{k}")).text for k in (1, 3)]
    assert ["faster than reading" in page for page in pages] == [True, False]


async def test_a_few_quick_tasks_do_not_mark_anybody_as_faster_than_reading(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=2, hits=4)
    await took(engine, {1: 0.5, 2: 0.5})
    await execute_sql(engine, "UPDATE responses SET source = 'page'")
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert "faster than reading</span>" not in html


@pytest.mark.parametrize("source", ["simulation", "api"])
async def test_answers_from_elsewhere_than_pages_are_not_marked_as_faster_than_reading(engine, researcher, source):
    campaign, _, _ = await answer_hits(engine, people=1, hits=12)
    await took(engine, {1: 0.1})
    await execute_sql(engine, "UPDATE responses SET source = :source", source=source)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert "faster than reading</span>" not in html


async def test_what_an_hour_pays_is_told_where_pay_is_known(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=2, hits=10, pay_per_hit=0.5, currency="EUR")
    await took(engine, {1: 60, 2: 120})
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert ">Pay per hour at work<" in html
    assert re.findall(r">(€30\.00|€15\.00)<", html) == ["€30.00", "€15.00"]
    assert (
        "<dt>Pay per hour at work</dt><dd>€15.00</dd>"
        in (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A2")).text
    )
    other, _, _ = await answer_hits(engine, people=1, hits=1)
    assert "per hour" not in (await researcher.get(f"/admin/campaigns/{other.slug}/annotators")).text


async def test_pay_per_hour_waits_for_as_many_tasks_of_a_person_as_on_the_overview(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=1, hits=9, pay_per_hit=0.5)
    await took(engine, {1: 60})
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert ">30.00<" not in html
    assert "Empty for fewer than 10 tasks" in html
    one = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A1")).text
    assert "<dt>Pay per hour at work</dt><dd>–</dd>" in one


async def test_annotators_who_left_before_answering_are_listed_only_if_asked_for(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=2, hits=1)
    await create_annotator(engine, campaign, "left")
    address = f"/admin/campaigns/{campaign.slug}/annotators"
    few, all_of_them = [(await researcher.get(address + query)).text for query in ("", "?all=true")]
    assert "2 annotators, numbered in order of arrival" in few
    assert ">A3<" not in few
    assert "3 annotators, numbered in order of arrival" in all_of_them
    assert ">A3<" in all_of_them


async def test_in_a_rehearsal_no_time_and_no_pay_per_hour_is_shown_and_values_are_said_to_be_invented(
    engine, researcher
):
    campaign = await create_running_campaign(engine, items=40, pay_per_hit=0.5, currency="GBP", repeat_items=True)
    me = await create_annotator(engine, campaign)
    for task in range(10):
        when = NOW + timedelta(minutes=task)
        hit = await try_to_lease_hit(engine, me, now=when)
        await submit_scores(engine, me, hit, now=when + timedelta(seconds=30))
    address = f"/admin/campaigns/{campaign.slug}"
    assert "£60.00</td>" in (await researcher.get(f"{address}/annotators")).text
    original, _, _ = await answer_hits(engine, people=1, name="Original")
    await execute_sql(
        engine, "UPDATE campaigns SET rehearsal_of = :original WHERE id = :id", original=original.id, id=campaign.id
    )
    html = (await researcher.get(f"{address}/annotators")).text
    assert "£60.00" not in html
    assert "in all</span>" not in html
    assert "they do not come from what the items say" in html
    assert "an hour at the median time" not in (await researcher.get(address)).text
    assert (await researcher.get(f"{address}/annotators/A1")).status_code == 200


@pytest.mark.parametrize(("design", "law", "has_column"), [("pairwise", "trueskill", False), ("slider", "easl", True)])
async def test_values_are_a_column_only_where_there_are_values_to_count(engine, researcher, design, law, has_column):
    campaign = await create_running_campaign(engine, design=design, update_law=law, items_per_hit=2)
    await create_annotator(engine, campaign)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators?all=true")).text
    assert ('<th scope="col">Values</th>' in page) == has_column
