"""`/metrics`: in Prometheus' format, summed over all server processes, and without a name of a person or campaign."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
import yaml
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from app.background.metrics import METRIC_FAMILIES, MetricValues, ProcessMetrics, prometheus_text
from app.main import create_app
from app.settings import Settings
from tests.annotation.hits.campaigns import create_running_campaign, form_fields
from tests.conftest import http_client
from tests.database.test_embedded import wait_until
from tests.servers import PATIENT_SECONDS, easel_serving
from tests.test_server import established, workers_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ALERT_RULES, DASHBOARD = EXAMPLES / "alerts.yml", EXAMPLES / "grafana.json"
TOKEN = "7f3a9c01d2e4b5860f1c2d3e4a5b6978"
BEARER = {"authorization": f"Bearer {TOKEN}"}
ENTRY_ROUTE = "/{platform_name:platform}/{link_key}"
VISITOR = {"PROLIFIC_PID": "SECRETWORKER", "STUDY_ID": "SECRETSTUDY", "SESSION_ID": "SECRETSESSION"}


def samples_of(text: str) -> dict[tuple[str, ...], float]:
    """Return the value of each sample by its name and the values of its labels, as Prometheus' own parser reads it."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest_asyncio.fixture
async def measured(database_url) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that has metrics."""
    app = create_app(Settings(database_url=database_url, metrics_token=SecretStr(TOKEN)))
    async with app.router.lifespan_context(app), http_client(app) as client:
        yield client


async def scrape(client: httpx.AsyncClient) -> str:
    reply = await client.get("/metrics", headers=BEARER)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return reply.text


async def test_answers_hits_and_requests_are_counted(measured, engine):
    campaign = await create_running_campaign(engine)
    before = samples_of(await scrape(measured))
    page = await measured.get(f"/prolific/{campaign.link_key}", params=VISITOR)
    reply = await measured.post(f"/prolific/{campaign.link_key}", data=form_fields(page.text))
    assert reply.status_code in (200, 303)
    await measured.get("/nowhere/SECRETPATH")
    after = samples_of(await scrape(measured))

    def increase(*series: str) -> float:
        return after[series] - before.get(series, 0)

    assert increase("easel_answers_total", "slider") == 1
    assert increase("easel_answer_seconds_count") == 1
    assert increase("easel_hits_leased_total", "slider") >= 1
    assert increase("easel_next_hit_seconds_count") >= 1
    assert increase("easel_selection_seconds_count") == increase("easel_hits_leased_total", "slider")
    assert increase("easel_http_requests_total", ENTRY_ROUTE, "GET", "2xx") == 1
    answered = ENTRY_ROUTE, "POST", f"{reply.status_code // 100}xx"
    assert increase("easel_http_requests_total", *answered) == 1
    assert increase("easel_http_requests_total", "none", "GET", "4xx") == 1
    assert increase("easel_http_request_seconds_count", ENTRY_ROUTE, "GET") == 1
    assert after["easel_campaigns", "running"] == 1
    assert after["easel_outbox_due",] == 0
    assert after["easel_processes",] == 1


async def test_no_label_names_a_campaign_a_person_or_an_item(measured, engine):
    campaign = await create_running_campaign(engine, name="Secret verbs")
    page = await measured.get(f"/prolific/{campaign.link_key}", params=VISITOR)
    await measured.post(f"/prolific/{campaign.link_key}", data=form_fields(page.text))
    for path in ("/admin/campaigns/secret-verbs", f"/link/{campaign.link_key}", "/link/SECRETKEY", "/SECRETPATH"):
        await measured.get(path)
    text = await scrape(measured)
    assert re.findall(rf"SECRET|secret|{campaign.link_key}|\bv\d+\b", text) == []


async def test_every_metric_is_described_and_its_histogram_is_cumulative(measured):
    await measured.get("/health")
    text = await scrape(measured)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {name.removesuffix("_total") for name in METRIC_FAMILIES} == set(families)
    assert all(family.documentation for family in families.values())
    buckets = [
        sample.value
        for sample in families["easel_http_request_seconds"].samples
        if sample.name.endswith("_bucket") and sample.labels["route"] == "/health"
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == samples_of(text)["easel_http_request_seconds_count", "/health", "GET"]


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}])
async def test_metrics_need_the_token(measured, headers):
    reply = await measured.get("/metrics", headers=headers | {"accept": "application/json"})
    assert reply.status_code == 401
    assert reply.json()["error"]["code"] == "metrics_token_wrong"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_of_the_token_counts_in_any_case(measured, scheme):
    assert (await measured.get("/metrics", headers={"authorization": f"{scheme} {TOKEN}"})).status_code == 200


async def test_without_a_token_there_is_no_such_page(client):
    assert (await client.get("/metrics", headers=BEARER)).status_code == 404


async def test_metrics_can_be_read_while_the_database_is_away():
    settings = Settings(
        database_url="postgresql://nobody@127.0.0.1:9/none",
        secret_key=SecretStr("k" * 32),
        metrics_token=SecretStr(TOKEN),
    )
    app = create_app(settings)
    async with app.router.lifespan_context(app), http_client(app) as client:
        before = samples_of(await scrape(client))
        client.cookies.set(app.state.cookie_name, "x" * 40)
        await client.get("/admin")
        after = samples_of(await scrape(client))
    assert ("easel_outbox_due",) not in after
    errors = [series for series in after if series[0] == "easel_db_errors_total"]
    assert sum(after[series] - before.get(series, 0) for series in errors) == 1


def test_the_numbers_of_all_processes_are_added_up_and_those_of_ended_ones_stay(tmp_path):
    asked, other, ended = ProcessMetrics(), ProcessMetrics(), ProcessMetrics()
    for number, process in enumerate((asked, other, ended), start=1):
        process.folder = tmp_path
        process.count("easel_answers_total", "slider", amount=number)
        process.observe("easel_answer_seconds", 0.02, times=number)
        process.save({("easel_live_viewers", ()): number})
    for file in tmp_path.iterdir():
        if '"slider"], 3' in file.read_text():
            os.utime(file, (time.time() - 3600,) * 2)
    samples = samples_of(prometheus_text(asked.sum_over_processes({("easel_live_viewers", ()): 10})))
    assert samples["easel_answers_total", "slider"] == 6
    assert samples["easel_answer_seconds_count",] == 6
    assert samples["easel_answer_seconds_sum",] == pytest.approx(0.12)
    assert samples["easel_live_viewers",] == 12
    assert samples["easel_processes",] == 2


def test_a_label_may_hold_any_character():
    values = MetricValues()
    values.numbers["easel_build_info", ('a "quoted" \\ path\nof two lines',)] = 1
    assert samples_of(prometheus_text(values)) == {("easel_build_info", 'a "quoted" \\ path\nof two lines'): 1}


def require_known_metrics(expression):
    named = re.findall(r"\b(easel_\w+)(?:{(\w+)=)?", expression)
    assert named
    for name, label in named:
        family = METRIC_FAMILIES[name.removesuffix("_bucket")]
        assert name.endswith("_bucket") == (family.kind == "histogram")
        assert {*filter(None, [label])} <= {*family.labels}


def test_the_alert_rules_of_the_example_read_metrics_that_exist_with_their_labels():
    rules = [rule for group in yaml.safe_load(ALERT_RULES.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) > 5
    for rule in rules:
        assert rule["annotations"]["summary"]
        if rule["alert"] != "EaselDown":  # asks Prometheus itself
            require_known_metrics(rule["expr"])


def test_the_dashboard_of_the_example_reads_metrics_that_exist_with_their_labels():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels) > 10
    for target in [target for panel in panels for target in panel["targets"]]:
        require_known_metrics(target["expr"])
        (grouped,) = re.findall(r"by \(([\w, ]+)\)", target["expr"]) or [""]
        labels = {label for name in re.findall(r"easel_\w+", target["expr"])
                  for label in METRIC_FAMILIES[name.removesuffix("_bucket")].labels}  # fmt: skip
        assert {*re.findall(r"\w+", grouped)} - {"le"} <= labels
        assert {*re.findall(r"{{(\w+)}}", target["legendFormat"])} <= labels


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_worker_that_is_killed_takes_no_counts_with_it(demo_data):
    serving = easel_serving(demo_data, "--workers", "2", EASEL_METRICS_TOKEN=TOKEN)
    with serving as server, httpx.Client(base_url=server.base, headers=BEARER, timeout=PATIENT_SECONDS) as client:
        for _ in range(40):
            httpx.get(f"{server.base}/health", timeout=PATIENT_SECONDS, verify=False)

        def all_are_counted() -> bool:
            samples = samples_of(client.get("/metrics").text)  # from one worker, which keeps the connection
            return samples.get(("easel_http_requests_total", "/health", "GET", "2xx")) == 40

        wait_until(all_are_counted, PATIENT_SECONDS)
        (victim,) = (pid for pid in workers_of(server.process.pid) if established(pid) == 0)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: victim not in (now := workers_of(server.process.pid)) and len(now) == 2, PATIENT_SECONDS)
        assert all_are_counted()
