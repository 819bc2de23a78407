"""Spans of OpenTelemetry: those of a request are in one trace, and none holds a value."""

import sys

import pytest
from fastapi import FastAPI
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from starlette.routing import Route

from app.http.request_tracing import TraceRequests
from app.main import create_app
from app.settings import Settings
from app.text.tracing import ENDPOINT_VARIABLE, TRACING, start_tracing, statement_span_name
from tests.annotation.hits.campaigns import create_running_campaign, form_fields
from tests.conftest import http_client

TRACE = "0af7651916cd43dd8448eb211c80319c"
ENVIRONMENT = {ENDPOINT_VARIABLE: "http://127.0.0.1:9"}


@pytest.fixture
def exporter(monkeypatch):
    monkeypatch.setattr(TRACING, "tracer", None)
    exporter = InMemorySpanExporter()
    start_tracing(ENVIRONMENT, lambda: exporter)
    return exporter


def finished_spans(exporter):
    TRACING.tracer.span_processor.force_flush()
    return exporter.get_finished_spans()


@pytest.mark.own_database
async def test_an_answer_is_one_trace_from_the_request_to_its_statements(exporter, engine, database_url):
    campaign = await create_running_campaign(engine)
    app = create_app(Settings(database_url=database_url))
    async with app.router.lifespan_context(app), http_client(app) as client:
        page = await client.post(f"/link/{campaign.link_key}", follow_redirects=True)
        exporter.clear()
        form = form_fields(page.text)
        traceparent = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        reply = await client.post(f"/link/{campaign.link_key}", data=form, headers=traceparent)
        assert reply.status_code == 200
    spans = [span for span in finished_spans(exporter) if f"{span.context.trace_id:032x}" == TRACE]
    (request,) = [span for span in spans if span.parent.is_remote]
    assert request.name == "POST /{platform_name:platform}/{link_key}"
    assert request.attributes["http.response.status_code"] == 200
    names = [span.name for span in spans]
    for statement in ("SELECT easel_lock_answers", "SELECT easel_store_answers", "BEGIN", "COMMIT"):
        assert statement in names
    assert all(span.start_time <= span.end_time for span in spans)


@pytest.mark.own_database
async def test_no_span_holds_an_address_a_text_or_another_value(exporter, engine, database_url):
    campaign = await create_running_campaign(engine)
    app = create_app(Settings(database_url=database_url))
    async with app.router.lifespan_context(app), http_client(app) as client:
        page = await client.post(f"/link/{campaign.link_key}", follow_redirects=True)
        form = form_fields(page.text)
        await client.post(f"/link/{campaign.link_key}", data=form)
        await client.get(f"/nowhere/{campaign.link_key}")
        await client.post("/login", data={"name": "Ada", "password": "HUNTER2"})
    texts = [span.to_json() for span in finished_spans(exporter)]
    assert len(texts) > 10
    for secret in (campaign.link_key, form["token"], "verb 1", "How frequent", "HUNTER2", "Ada", "easel.test"):
        assert not [text for text in texts if secret in text]


async def test_a_crash_is_an_error_by_the_name_of_its_type_without_its_text(exporter):
    async def crash(_request):
        raise ValueError("the answer of ada@easel.test")

    app = FastAPI(routes=[Route("/crash", crash)])
    app.add_middleware(TraceRequests, tracer=TRACING.tracer)
    async with http_client(app) as client:
        assert (await client.get("/crash")).status_code == 500
    (span,) = finished_spans(exporter)
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "ValueError"
    assert "ada" not in span.to_json()


def test_a_statement_is_named_by_its_command_and_target():
    names = {
        "SELECT items.shown FROM items WHERE id = $1": "SELECT items",
        "\n    insert into responses VALUES ($1)": "INSERT",
        "INSERT INTO responses VALUES ($1)": "INSERT responses",
        "SELECT 'FROM' , 'Ada'": "SELECT",
        "COMMIT;": "COMMIT",
        "": "SQL",
    }
    assert {sql: statement_span_name(sql) for sql in names} == names


def test_nothing_is_traced_unless_an_endpoint_is_set(monkeypatch):
    monkeypatch.setattr(TRACING, "tracer", None)
    start_tracing({})
    assert TRACING.tracer is None


def test_an_endpoint_without_the_packages_is_said(monkeypatch, caplog):
    monkeypatch.setattr(TRACING, "tracer", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    start_tracing(ENVIRONMENT)
    assert TRACING.tracer is None
    assert "easel[otel]" in caplog.text
