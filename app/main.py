"""The application: database, routers, error pages, static files; nothing else."""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from itertools import chain

from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.datastructures import State

from app.accounts import api as auth_api
from app.accounts.guards import require_access_and_csrf_yielding_session
from app.accounts.pages import account as auth
from app.accounts.pages import invitations, members, openid, researchers
from app.accounts.pages import log as audit_log
from app.accounts.pages.openid import provider_of_settings_or_none
from app.accounts.pages.role_refusals import handle_role_forbids
from app.accounts.roles import RoleForbids
from app.accounts.secrets import KnownBrowsers, load_or_create_installation_key, session_cookie_name
from app.alerts import api as alerts_api
from app.alerts import outbox
from app.alerts import pages as alerts
from app.alerts.outbox import Outbox
from app.analysis.api import adjudication as adjudication_api
from app.analysis.api import analysis as analysis_api
from app.analysis.api import remarks as remarks_api
from app.analysis.findings_part import load_finding_about_annotators_or_none
from app.analysis.fit_cache import FitCache
from app.analysis.pages import adjudication, analysis, remarks
from app.annotation.hits import api as serving_api
from app.annotation.hits.campaign_index import MB, PosteriorCache
from app.annotation.hits.pages import annotator as serving
from app.annotation.hits.pages.page_pieces import PagePiecesCache
from app.annotation.hits.program_annotators import ProgramAssignments
from app.annotation.hits.visit_requests import VisitRequest, VisitServer
from app.annotation.hits.withdrawal_code import WithdrawalCodes
from app.annotation.onboarding import api as visit_api
from app.annotation.onboarding import pages as visit
from app.annotation.platforms.approvals import list_arrival_platforms_that_take_approvals
from app.annotation.platforms.assignments import WorkerTokens
from app.annotation.platforms.registry import EXPERIMENT_PATH_PREFIX, platforms_with_pages
from app.annotation.platforms.visit_limit import VisitLimiter
from app.background import readiness
from app.background.ending import PROCESS_IS_ENDING
from app.background.loop import BackgroundLoop
from app.background.metrics import SAVE_PAUSE_SECONDS, make_metrics_saver
from app.campaigns.api import campaigns as campaigns_api
from app.campaigns.page_functions import PAGE_FUNCTIONS
from app.campaigns.pages import approvals as approval_pages
from app.campaigns.pages import campaigns, preview, quality_rules, setup, visit_preview
from app.dashboard import conditions_api
from app.dashboard import pages as dashboard
from app.dashboard.home import api as home_api
from app.dashboard.home import pages as home
from app.dashboard.live import LiveDashboards
from app.database.batch_queue import BatchQueue
from app.database.campaign import CampaignNames
from app.database.session import (
    LOCK_TIMEOUT_SECONDS,
    PAGE_LIMITS,
    READING_LIMITS,
    SERVING_LIMITS,
    PrimaryProof,
    ServingConnections,
    create_engine,
)
from app.experiments import pages as experiments
from app.exports import api as exports_api
from app.exports import pages as exports
from app.goal_monitor import api as stopping_api
from app.goal_monitor import monitor
from app.help import pages as help_pages
from app.http import dependencies, middleware, templating
from app.http.request_metrics import PLAIN_ROUTES_STATE_KEY, MeasureRequests
from app.http.request_tracing import TraceRequests
from app.imports.api import campaign_files as campaign_files_api
from app.imports.api import imports as imports_api
from app.imports.api import item_changes as item_changes_api
from app.imports.import_continuation import INTERRUPTED_IMPORTS_PAUSE_SECONDS, InterruptedImports
from app.imports.pages import campaign_files, imports, item_list
from app.imports.upload_slots import UploadSlots
from app.maintenance import pages as metrics_pages
from app.maintenance.server_gauges import gauges_of_process
from app.media import pages as media
from app.palette import api as palette_api
from app.palette import pages as palette
from app.payments.api import ledger as payments_api
from app.payments.api import submissions as submissions_api
from app.payments.connections import ServiceConnector
from app.payments.pages import ledger as payment_pages
from app.payments.pages import notices as payment_notices
from app.payments.pages import submissions as submission_pages
from app.payments.payment_work import PAYMENT_WORK_PAUSE_SECONDS, PaymentWork
from app.payments.token_encryption import TokenCipher
from app.planning import pages as planning
from app.planning.forecast import ForecastRunner
from app.privacy import api as privacy_api
from app.privacy import erasure_work, retention
from app.privacy.erasure_work import ErasureWork
from app.privacy.pages import researcher as privacy
from app.privacy.pages import withdraw
from app.privacy.retention import RetentionWork
from app.quality import pages as quality
from app.quality.annotators import MedianSecondsCache
from app.quality.api import annotators as annotators_api
from app.quality.api import quality as quality_api
from app.quality.peer_agreement import AnnotatorComparisons
from app.quality.rule_monitor import CampaignMonitor
from app.record import due_revisions
from app.record.due_revisions import DueRevisions
from app.recruiting import api as recruiting_api
from app.recruiting import pages as recruiting
from app.server_calls import api as server_calls_api
from app.server_calls import pages as server_call_pages
from app.server_calls.call_work import SERVER_CALLS_PAUSE_SECONDS, ServerCallWork
from app.server_calls.http_call import make_server_call
from app.settings import Settings, read_settings
from app.simulation import pages as rehearsals
from app.simulation.rehearsals import RehearsalCrowds
from app.text import redaction
from app.text.postgres_address import parse_postgres_address
from app.text.tracing import TRACING, start_tracing

log = logging.getLogger(__name__)

API_DESCRIPTION = (
    "Send `Authorization: Bearer TOKEN`; `POST /api/v1/tokens` returns a token for a name and password. "
    'Every refusal is `{"error": {"code", "message", "details"}}`. Programs can rely on the code, which never changes; '
    "the message is for people. Any request can return 400 `unreadable_body` (neither JSON nor a form in UTF-8), "
    "413 `too_large`, 429 `too_many_attempts` or 503 `database_unavailable`. After 503, try again in `Retry-After` "
    "seconds: nothing was stored, except that the server continues an interrupted import of results. An upload can "
    "also return 503 `uploads_busy` while the server reads other large files."
)


async def load_operator_or_installation_key(database: AsyncEngine, settings: Settings) -> str:
    """Return the operator's key, else the one made at the first start, which all processes share by the database."""
    if settings.secret_key is not None:
        return settings.secret_key.get_secret_value()
    async with database.begin() as connection:
        return await load_or_create_installation_key(connection)


@asynccontextmanager
async def open_application(app: FastAPI, settings: Settings, draw_seed: int = 0) -> AsyncIterator[None]:
    """Fill `app.state` with the connections, caches and background work of one run of the application."""
    assert settings.database_url is not None  # noqa: S101  (`easel serve` fills it in before it starts the server)
    # Half of the connections are for annotators: more of them would only wait for each other's rows. One additional
    # connection serves other campaigns while the answers to one campaign wait for a lock. Operators find these numbers
    # in the documentation.
    serving_pool_size = settings.pool_size // 2
    state = app.state
    url = settings.database_url
    state.database = create_engine(url, pool_size=settings.pool_size - serving_pool_size, limits=PAGE_LIMITS)
    serving = state.serving_database = create_engine(
        url, pool_size=serving_pool_size + 1, lock_seconds=LOCK_TIMEOUT_SECONDS, limits=SERVING_LIMITS
    )
    state.reading_database = create_engine(url, pool_size=2, limits=READING_LIMITS)
    key = await load_operator_or_installation_key(state.database, settings)
    state.serving_connections = ServingConnections(serving, serving_pool_size + 1)
    has_several_databases = len(parse_postgres_address(url).hosts) > 1
    state.primary_proof = PrimaryProof(state.serving_connections) if has_several_databases else None
    state.utc_now = dependencies.utc_now  # the clock of routes without dependencies
    state.names = CampaignNames()
    state.posterior_cache = PosteriorCache(settings.campaign_memory_mb * MB, draw_seed)
    state.program_assignments = ProgramAssignments()
    state.page_pieces = PagePiecesCache()
    state.visit_requests, state.page_requests = (
        BatchQueue(state.serving_connections, VisitServer(state.posterior_cache).serve, VisitRequest.reply_to_failure)
        for _ in range(2)  # so that answers do not wait for the first HITs of opened pages, which take longer
    )
    state.fits = FitCache()
    state.live = LiveDashboards(state.database, state.posterior_cache, dependencies.get_now)
    state.forecasts = ForecastRunner(state.database)
    state.due_revisions = DueRevisions(state.database, dependencies.get_now)
    state.erasures = ErasureWork(state.database, dependencies.get_now)
    state.retention = RetentionWork(state.database, dependencies.get_now, settings.retention_days)
    state.comparisons = AnnotatorComparisons(state.reading_database)
    state.median_seconds = MedianSecondsCache()
    state.list_platforms_to_approve = list_arrival_platforms_that_take_approvals
    state.load_finding_about_annotators = partial(
        load_finding_about_annotators_or_none, state.fits, state.reading_database
    )
    state.campaign_monitor = CampaignMonitor(
        state.database, dependencies.get_now, monitor.CAMPAIGN_SCANS, processes=settings.workers
    )
    state.rehearsals = RehearsalCrowds(state.database, dependencies.utc_now, state.campaign_monitor.request_scan)
    state.upload_slots = UploadSlots()
    state.visit_limiter = VisitLimiter(key, settings)
    state.withdrawal_codes = WithdrawalCodes(key)
    state.worker_tokens = WorkerTokens(key, hours=settings.worker_token_hours)
    state.cookie_name = session_cookie_name(key)
    state.known_browsers = KnownBrowsers(key)
    state.provider = provider_of_settings_or_none(settings)
    state.outbox = Outbox(state.database, settings, key, dependencies.get_now)
    state.server_call_work = ServerCallWork(
        state.database, dependencies.get_now, partial(make_server_call, allow_private=settings.webhooks_inside)
    )
    state.payment_connector = ServiceConnector(settings, TokenCipher(key))
    state.payment_work = PaymentWork(state.database, state.payment_connector, dependencies.get_now)
    PROCESS_IS_ENDING.clear()  # another server may have ended in this process
    state.readiness = readiness.checks_of_server(state.serving_connections)
    loops = start_and_register_background_loops(state, settings)
    with state.live.ending_streams_on_signals():
        yield
    for work in (
        *loops,
        state.outbox,
        state.server_call_work,
        state.rehearsals,
        state.campaign_monitor,
        state.erasures,
        state.due_revisions,
        state.comparisons,
        state.live,
        state.readiness,
    ):
        await work.stop()
    await state.serving_connections.close()
    for database in (state.serving_database, state.reading_database, state.database):
        await database.dispose()


def start_and_register_background_loops(state: State, settings: Settings) -> list[BackgroundLoop]:
    """Start the loops of this process, and register them and its other background work with `/ready`."""
    interrupted_imports = InterruptedImports(state.database, state.campaign_monitor.request_scan)
    loops = [
        BackgroundLoop(name, work, pause_seconds=pause, wait_first=name not in {"revisions", "imports", "erasures"})
        for name, work, pause in (
            ("revisions", state.due_revisions.revise_due_campaigns, due_revisions.DUE_REVISIONS_PAUSE_SECONDS),
            ("imports", interrupted_imports.continue_imports, INTERRUPTED_IMPORTS_PAUSE_SECONDS),
            ("erasures", state.erasures.finish_due_erasures, erasure_work.ERASURES_PAUSE_SECONDS),
            ("retention", state.retention.erase_outdated, retention.RETENTION_PAUSE_SECONDS),
            ("alerts", state.outbox.raise_silence_alerts_and_start_sending, outbox.OUTBOX_PAUSE_SECONDS),
            (
                "server calls",
                state.server_call_work.resolve_interrupted_and_start_due_calls,
                SERVER_CALLS_PAUSE_SECONDS,
            ),
            ("payments", state.payment_work.pay_and_reconcile_due_campaigns, PAYMENT_WORK_PAUSE_SECONDS),
        )
    ]
    if settings.metrics_token is not None:
        save = make_metrics_saver(partial(gauges_of_process, state))
        loops.append(BackgroundLoop("metrics", save, pause_seconds=SAVE_PAUSE_SECONDS))
    parts = (state.campaign_monitor, state.rehearsals, state.comparisons, state.live)
    for work in (*loops, state.outbox.sending, state.server_call_work.calling, *(part.tasks for part in parts)):
        state.readiness.register_check(work.name, readiness.make_check_of_work(work), is_required=False)
    for loop in loops:
        loop.start()
    return loops


# The routers with the most requests come first, because FastAPI tries them in order.
ROUTERS = (
    *(serving.router, serving_api.router, experiments.router, media.router, withdraw.router, payment_notices.router),
    *(
        auth.public,
        openid.public,
        auth.router,
        openid.router,
        invitations.public,
        researchers.router,
        members.router,
    ),
    *(
        campaigns.root_redirect_router,
        setup.router,
        campaigns.router,
        campaign_files.router,
        imports.router,
        item_list.router,
        preview.router,
        preview.preview_router,
        visit_preview.router,
        quality_rules.router,
        planning.router,
        rehearsals.router,
    ),
    *(home.router, dashboard.router, exports.router, exports.scores_router, analysis.router, remarks.router),
    adjudication.router,
    *(
        palette.router,
        help_pages.router,
        audit_log.router,
        alerts.router,
        quality.router,
        privacy.router,
        payment_pages.router,
        submission_pages.router,
        recruiting.router,
        server_call_pages.router,
        approval_pages.router,
        visit.router,
    ),
    *(
        auth_api.router,
        campaigns_api.router,
        home_api.router,
        campaign_files_api.router,
        imports_api.router,
        item_changes_api.router,
        exports_api.router,
        analysis_api.router,
        auth_api.log_router,
        alerts_api.router,
    ),
    *(
        annotators_api.router,
        quality_api.router,
        privacy_api.router,
        payments_api.router,
        submissions_api.router,
        recruiting_api.router,
        server_calls_api.router,
        palette_api.router,
        remarks_api.router,
        adjudication_api.router,
        visit_api.router,
        visit_api.participants_router,
        stopping_api.router,
        conditions_api.router,
        campaigns_api.templates_router,
    ),
)


def create_server_app() -> FastAPI:
    """Return the application for a process of a server, with a random seed: each process draws other HITs."""
    return create_app(draw_seed=secrets.randbits(32))


def create_app(settings: Settings | None = None, *, draw_seed: int = 0) -> FastAPI:
    """Return Easel's application for the database in the settings.

    Args:
        settings: The settings; by default those of the environment.
        draw_seed: Decides, with the seeds of the campaigns, which HITs this process draws.

    """
    redaction.install_log_redaction()
    start_tracing()
    settings = settings or read_settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_application(app, settings, draw_seed):
            yield

    app = FastAPI(
        title="Easel",
        version=version("easel"),
        description=API_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would redirect to the host that the request claims; `handle_http_error` does not
        openapi_url="/api/v1/openapi.json",
    )
    app.state.settings = settings
    app.state.unsafe_paths = tuple(platform.entry_path("") for platform in platforms_with_pages())
    app.add_route(serving.ANNOTATOR_PATH, serving.post_annotator_form, methods=["POST"], include_in_schema=False)
    setattr(app.state, PLAIN_ROUTES_STATE_KEY, {serving.post_annotator_form: serving.ANNOTATOR_PATH})
    templating.english_environment.globals |= PAGE_FUNCTIONS
    app.mount("/static", StaticFiles(directory=templating.STATIC_FOLDER), name="static")
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route(
        "/admin/api",
        api_reference_page,
        include_in_schema=False,
        dependencies=[Depends(require_access_and_csrf_yielding_session)],
    )
    app.add_api_route("/health", health_endpoint, include_in_schema=False)
    app.add_api_route("/ready", readiness_endpoint, include_in_schema=False)
    if settings.metrics_token is not None:
        app.include_router(metrics_pages.router)
    dependencies.register_error_handlers(app)
    app.add_exception_handler(RoleForbids, handle_role_forbids)
    app.add_exception_handler(auth.PasswordNeeded, auth.confirm_password_response)
    app.add_middleware(middleware.SettingsOfApplication)
    app.add_middleware(middleware.BodyLimits, upload_mb=settings.max_upload_mb, media_mb=settings.max_media_mb)
    app.add_middleware(middleware.CompressPages)
    framed = [platform.entry_path("") for platform in platforms_with_pages() if platform.frame_origins]
    app.add_middleware(
        middleware.SecurityHeaders,
        form_targets=tuple(origin for platform in platforms_with_pages() for origin in platform.form_origins(settings)),
        frame_ancestors=(
            *chain(*(platform.frame_origins for platform in platforms_with_pages())),
            *settings.frame_ancestors,
        ),
        https_only=(settings.public_url or "").startswith("https://"),
        framed_paths=(*framed, *(EXPERIMENT_PATH_PREFIX + path for path in framed)),
    )
    logs_requests = settings.log_format == "json"
    if logs_requests or settings.metrics_token is not None:
        app.add_middleware(MeasureRequests, logs_requests=logs_requests)
    if TRACING.tracer is not None:
        app.add_middleware(TraceRequests, tracer=TRACING.tracer)
    # The middleware added last runs first, so all others see a GET.
    app.add_middleware(middleware.HeadAsGet, unsafe_paths=app.state.unsafe_paths)
    return app


async def api_reference_page(request: Request) -> HTMLResponse:
    """Return the reference of the API, made from its OpenAPI document."""
    return dependencies.render_page(request, "admin/api.html", {"api": request.app.openapi()})


async def health_endpoint() -> JSONResponse:
    """Return 200 as long as this process answers requests, whatever the state of its database."""
    return JSONResponse({"status": "ok"})


async def readiness_endpoint(request: Request) -> JSONResponse:
    """Return 200 when this process can serve annotators now, else 503 with the reason."""
    checks: readiness.ReadinessChecks = request.app.state.readiness
    results = await checks.run_and_return_result_by_check()
    failed = checks.names_of_failed_required_checks(results)
    headers = {"Cache-Control": "no-store"} | ({"Retry-After": "2"} if failed else {})
    return JSONResponse(readiness.build_readiness_report_body(results, failed), 503 if failed else 200, headers)
