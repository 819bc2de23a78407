"""Researchers' page about the sharing of a campaign: members, invitations, read-only links."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts import invitations, members, shared_links
from app.accounts.guards import Researcher, researcher_router
from app.accounts.pages.account import password_confirmation_dependency, require_current_password
from app.accounts.pages.invitations import invitation_url, shared_link_url
from app.accounts.roles import NEEDS_BY_CAMPAIGN_ROLE, VIEWER
from app.errors import Refusal
from app.http.dependencies import Database, Now, RowId, Transaction, get_now, render_page
from app.record.campaign import load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse

router = researcher_router("/admin/campaigns/{slug}")

MemberFormText = Annotated[str, Form(max_length=1000)]
MemberAction = Callable[[Any, Any], Awaitable[Any]]


@router.get("/members")
async def members_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    return await render_members_page(request, connection, slug)


async def render_members_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    refusal: Refusal | None = None,
    refused_form_name: str = "",
    new_invitation_url: str | None = None,
    new_link_url: str | None = None,
) -> HTMLResponse:
    """Show the page. The addresses of an `new_invitation_url` and a `new_link_url` are shown this once; a refusal
    appears next to its `refused_form_name`.
    """
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    context = {
        "campaign": campaign,
        "members": await members.load_members_in_name_order(connection, campaign.id),
        "invitations": await invitations.list_open_invitations(connection, campaign.id, now=await get_now()),
        "links": await shared_links.list_shared_links(connection, campaign.id),
        "roles": list(NEEDS_BY_CAMPAIGN_ROLE),
        "refused_form": refused_form_name,
        "new_invitation": new_invitation_url,
        "new_shared": new_link_url,
        "days": invitations.INVITATION_DAYS,
    }
    return render_page(request, "admin/members.html", context, refusal=refusal)


async def run_member_action_and_redirect(
    request: Request, database: Database, slug: str, action: MemberAction, done_key: str, *, form_name: str = "members"
) -> Response:
    """Run an action and redirect to the page; on refusal, show the page with the reason."""
    try:
        async with database.begin() as connection:
            await action(connection, await load_campaign_by_slug_or_refuse(connection, slug))
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_members_page(request, connection, slug, refusal=refusal, refused_form_name=form_name)
    return RedirectResponse(f"/admin/campaigns/{slug}/members?done={done_key}", status_code=303)


@router.post("/members", dependencies=[password_confirmation_dependency("add a member")])
async def submit_new_member(
    *,
    request: Request,
    database: Database,
    slug: str,
    now: Now,
    name: MemberFormText = "",
    role: MemberFormText = VIEWER,
) -> Response:
    add = partial(members.add_member_or_refuse, name=name, role=role, now=now)
    return await run_member_action_and_redirect(request, database, slug, add, "member-added", form_name="add")


@router.post("/members/{user_id}/role", dependencies=[password_confirmation_dependency("change the role of a member")])
async def submit_member_role(
    request: Request, database: Database, slug: str, user_id: RowId, role: MemberFormText = ""
) -> Response:
    change_role = partial(members.set_member_role_unless_last_owner, user_id=user_id, role=role)
    return await run_member_action_and_redirect(request, database, slug, change_role, "role")


@router.post("/members/{user_id}/remove", dependencies=[password_confirmation_dependency("remove a member")])
async def submit_member_removal(request: Request, database: Database, slug: str, user_id: RowId) -> Response:
    remove = partial(members.remove_member_unless_last_owner, user_id=user_id)
    return await run_member_action_and_redirect(request, database, slug, remove, "member-removed")


@router.post("/invitations")
async def submit_campaign_invitation(
    *,
    request: Request,
    database: Database,
    session: Researcher,
    slug: str,
    now: Now,
    role: MemberFormText = VIEWER,
    words: MemberFormText = "",
    current: MemberFormText = "",
) -> HTMLResponse:
    """Create an invitation to the campaign."""
    try:
        await require_current_password(request, database, session, current, now=now)
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            token = await invitations.create_invitation_and_return_token(
                connection, campaign, role, words, inviter_id=session.user_id, now=now
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_members_page(
                request, connection, slug, refusal=refusal, refused_form_name="invitations"
            )
    async with database.begin() as connection:
        return await render_members_page(request, connection, slug, new_invitation_url=invitation_url(request, token))


@router.post("/invitations/{invitation}/withdraw")
async def submit_campaign_invitation_withdrawal(connection: Transaction, slug: str, invitation: RowId) -> Response:
    await invitations.withdraw_invitation_or_refuse(
        connection, await load_campaign_by_slug_or_refuse(connection, slug), invitation
    )
    return RedirectResponse(f"/admin/campaigns/{slug}/members?done=invitation-withdrawn", status_code=303)


@router.post("/links", dependencies=[password_confirmation_dependency("create a read-only link")])
async def submit_new_shared_link(
    *, request: Request, database: Database, session: Researcher, slug: str, now: Now, words: MemberFormText = ""
) -> HTMLResponse:
    """Create a read-only link."""
    try:
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            secret = await shared_links.create_shared_link_and_return_secret(
                connection, campaign, words, maker_name=session.name, now=now
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_members_page(request, connection, slug, refusal=refusal, refused_form_name="links")
    async with database.begin() as connection:
        return await render_members_page(request, connection, slug, new_link_url=shared_link_url(request, secret))


@router.post("/links/{link}/withdraw")
async def submit_link_withdrawal(connection: Transaction, slug: str, link: RowId) -> Response:
    await shared_links.withdraw_shared_link_or_refuse(
        connection, await load_campaign_by_slug_or_refuse(connection, slug), link
    )
    return RedirectResponse(f"/admin/campaigns/{slug}/members?done=link-withdrawn", status_code=303)
