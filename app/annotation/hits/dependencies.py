"""Admission of programs by their token, for the routes of the API that hand out HITs and store answers."""

from typing import Annotated

from fastapi import Depends, Request

from app.accounts import guards
from app.annotation.hits import program_annotators
from app.database.session import Driver
from app.http.dependencies import (
    Now,
    ServingConnection,
    borrow_serving_connection,
    client_network_or_empty,
    get_now,
    parse_canonical_row_id_or_none,
    read_whole_body,
)
from app.http.request_problems import require_known_names_once


async def admit_program_and_return_connection(
    request: Request, token: guards.BearerToken, connection: ServingConnection, now: Now
) -> Driver:
    """Return the request's connection after the program's token was accepted on it."""
    await guards.admit_program_by_token(connection, request, token, now=now)
    await require_known_names_once(request)
    return connection


async def admit_program_without_connection(request: Request, token: guards.BearerToken) -> None:
    """Accept the program's token; afterwards the request holds no connection."""
    await read_whole_body(request)
    async with borrow_serving_connection(request) as connection:
        await guards.admit_program_by_token(connection, request, token, now=await get_now())
    await require_known_names_once(request)


async def admit_program_and_load_hit(request: Request, token: guards.BearerToken) -> program_annotators.ProgramHit:
    """Return the HIT at this address. A bad token is refused first, whether the HIT exists or not."""
    hit_id = parse_canonical_row_id_or_none(request.path_params["hit_id"])
    async with request.app.state.serving_connections.borrow_autocommit_connection() as connection:
        now = await get_now()
        hit = await program_annotators.load_hit_and_store_token_use(
            connection, token, hit_id, client_network_or_empty(request), now=now
        )
    guards.require_need_if_hit_visible(request, hit.access, is_hit_visible=hit.campaign_id is not None)
    await require_known_names_once(request)
    return hit


LoadedProgramHit = Annotated[program_annotators.ProgramHit, Depends(admit_program_and_load_hit)]
