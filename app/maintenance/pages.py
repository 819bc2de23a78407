"""`/metrics` for Prometheus; it exists only if `EASEL_METRICS_TOKEN` is set."""

import hmac

from fastapi import APIRouter, Request, Response
from fastapi.security.utils import get_authorization_scheme_param

from app.background.metrics import PROCESS_METRICS, prometheus_text
from app.errors import Unauthenticated
from app.maintenance.server_gauges import gauges_of_process, load_database_gauges_or_empty

PROMETHEUS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(include_in_schema=False)


@router.get("/metrics")
async def metrics_page(request: Request) -> Response:
    """Return the metrics of all server processes, added up."""
    token = request.app.state.settings.metrics_token
    scheme, credentials = get_authorization_scheme_param(request.headers.get("authorization"))
    is_token = hmac.compare_digest(credentials.encode(), token.get_secret_value().encode())
    if scheme.lower() != "bearer" or not is_token:
        raise Unauthenticated("This page needs the bearer token of EASEL_METRICS_TOKEN.", code="metrics_token_wrong")
    values = PROCESS_METRICS.sum_over_processes(gauges_of_process(request.app.state))
    values.numbers.update(await load_database_gauges_or_empty(request.app.state.database))
    return Response(prometheus_text(values), media_type=PROMETHEUS_CONTENT_TYPE, headers={"Cache-Control": "no-store"})
