"""The address that gets the signed notices of a platform's service."""

from fastapi import APIRouter, Request, Response

from app.http.dependencies import Database, Now
from app.payments.dependencies import Connector
from app.payments.notices import make_campaign_due_by_notice_or_refuse

router = APIRouter(include_in_schema=False)


@router.post("/{platform_name:platform}/hook/{hook_key}")
async def receive_service_notice(
    request: Request, database: Database, connector: Connector, platform_name: str, hook_key: str, *, now: Now
) -> Response:
    """Take a notice: its bytes as they came, since they are signed."""
    body = await request.body()
    async with database.begin() as connection:
        await make_campaign_due_by_notice_or_refuse(
            connection,
            connector,
            platform_name=platform_name,
            hook_key=hook_key,
            headers=request.headers,
            body=body,
            now=now,
        )
    return Response(status_code=204)
