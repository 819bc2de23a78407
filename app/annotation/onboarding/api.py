"""API: people with personal links, and the lists of people who may take part."""

from datetime import datetime
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, Field, StringConstraints

from app.accounts.guards import program_router
from app.annotation.onboarding import participant_lists, personal_links
from app.annotation.onboarding.list_action import ListAction
from app.annotation.onboarding.participant_lists import ListedPeopleCount, ParticipantList
from app.annotation.onboarding.quotas import count_places_in_quotas
from app.annotation.platforms.platform import MAX_PLATFORM_ID_CHARACTERS
from app.database.audit_log import log_change
from app.designs.field_flags import RequestBody
from app.http.dependencies import Now, Transaction, openapi_description_of_refusals, request_base_url
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router("/api/v1/campaigns/{slug}/people", "Campaigns", refusals={404: "`campaign_not_found`"})

participants_router = program_router(
    "/api/v1/campaigns/{slug}/participants", "Campaigns", refusals={404: "`campaign_not_found`"}
)


class PeopleRequest(RequestBody):
    names: Annotated[
        list[
            Annotated[
                str, StringConstraints(strip_whitespace=True, max_length=personal_links.MAX_PERSON_NAME_CHARACTERS)
            ]
        ],
        Field(
            max_length=personal_links.MAX_PERSONAL_LINKS,
            description="Names or email addresses. People who are already on the list keep their link.",
        ),
    ]


class AddedPeopleSchema(BaseModel):
    added: int


class PersonSchema(BaseModel):
    name: str
    link: str = Field(description="Personal link. Every visitor who uses it answers as this person.")
    opened_at: datetime | None = Field(description="Time when the link was first opened; null if it was not used.")
    hits_answered: int


class PeopleSchema(BaseModel):
    total: int
    used: int
    people: list[PersonSchema]


@router.get("")
async def list_people_with_links(
    request: Request,
    connection: Transaction,
    slug: str,
    offset: Annotated[int, Query(ge=0, le=personal_links.MAX_PERSONAL_LINKS)] = 0,
    limit: Annotated[int, Query(ge=1, le=personal_links.MAX_PERSONAL_LINKS)] = 1_000,
) -> PeopleSchema:
    """Return the people on the campaign's list, with their links. The audit log records each read."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await log_change(connection, "people.downloaded", campaign, about="people.json")
    total, used = await personal_links.count_created_and_used_personal_links(connection, campaign.id)
    people_page = [
        PersonSchema(
            name=row.name,
            link=personal_links.personal_link_url(request_base_url(request), campaign.link_key, row.link),
            opened_at=row.opened_at,
            hits_answered=row.answered,
        )
        for row in await personal_links.list_personal_links(connection, campaign.id, limit=limit, offset=offset)
    ]
    return PeopleSchema(total=total, used=used, people=people_page)


@router.post(
    "",
    status_code=201,
    responses=openapi_description_of_refusals(
        {409: "`is_a_rehearsal`", 413: "`too_many_people`", 422: "`invalid`, `names_missing`, `name_too_long`"}
    ),
)
async def add_people(connection: Transaction, slug: str, request_body: PeopleRequest, now: Now) -> AddedPeopleSchema:
    """Create a personal link for each person who has none yet."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return AddedPeopleSchema(
        added=await personal_links.create_missing_links_and_count_them(
            connection, campaign, request_body.names, now=now
        )
    )


class ParticipantCountSchema(BaseModel):
    people: int
    erased: int = Field(
        description="How many of them were erased, so their ids are gone. Blocks and a closed allow list remain."
    )


class ParticipantListSchema(ParticipantCountSchema):
    ids: list[str]


class ParticipantsRequest(RequestBody):
    ids: Annotated[
        list[Annotated[str, StringConstraints(max_length=MAX_PLATFORM_ID_CHARACTERS)]],
        Field(
            max_length=participant_lists.MAX_LISTED_PEOPLE,
            description="Ids of the platform, names of people with personal links, or names that a program uses.",
        ),
    ]
    action: ListAction = Field(
        default="add", description="Whether to add these people, remove them, or replace the list with them."
    )
    may_open_to_everyone: bool = Field(
        default=False, description="Whether the allow list may become empty, so that everyone may take part."
    )


class ChangedParticipantsSchema(ParticipantCountSchema):
    changed: int = Field(description="How many entries were added or removed.")


class QuotaSchema(BaseModel):
    question: str
    answer: str
    limit: int
    people: int = Field(description="How many people have a place, including those who left within the lease time.")


class ParticipantsSchema(BaseModel):
    allow: ParticipantCountSchema
    block: ParticipantCountSchema
    groups: dict[str, ParticipantCountSchema]
    quotas: list[QuotaSchema]


@participants_router.get("")
async def count_participants(connection: Transaction, slug: str) -> ParticipantsSchema:
    """Return how many people are on the lists of those who may take part (`allow`) and who may not (`block`), in each
    group, and in each quota.
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    counts = await participant_lists.count_listed_people_by_list(connection, campaign.id)
    return ParticipantsSchema(
        allow=ParticipantCountSchema(**counts["allow"]._asdict()),
        block=ParticipantCountSchema(**counts["block"]._asdict()),
        groups={
            name: ParticipantCountSchema(**count._asdict())
            for name, count in counts.items()
            if name not in ("allow", "block")
        },
        quotas=[QuotaSchema(**places._asdict()) for places in await count_places_in_quotas(connection, campaign)],
    )


@participants_router.get("/{list_name}")
async def read_participant_list(
    connection: Transaction,
    slug: str,
    list_name: ParticipantList,
    offset: Annotated[int, Query(ge=0, le=participant_lists.MAX_LISTED_PEOPLE)] = 0,
    limit: Annotated[int, Query(ge=1, le=participant_lists.MAX_LISTED_PEOPLE)] = 1_000,
) -> ParticipantListSchema:
    """Return the ids on a list: `allow`, `block` or a group. The audit log records each read."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await log_change(connection, "people.downloaded", campaign, about=f"participants: {list_name}")
    count = (await participant_lists.count_listed_people_by_list(connection, campaign.id)).get(
        list_name, ListedPeopleCount()
    )
    ids = await participant_lists.list_participant_ids(connection, campaign.id, list_name, limit=limit, offset=offset)
    return ParticipantListSchema(ids=list(ids), **count._asdict())


@participants_router.post(
    "/{list_name}",
    responses=openapi_description_of_refusals(
        {
            409: "`is_a_rehearsal`, `opens_to_everyone`",
            413: "`too_many_people`",
            422: "`invalid`, `person_id_wrong`",
        }
    ),
)
async def add_remove_or_replace_participants(
    connection: Transaction, slug: str, list_name: ParticipantList, request_body: ParticipantsRequest, now: Now
) -> ChangedParticipantsSchema:
    """Add people to a list, remove them, or replace the list. People who are in the campaign already stay."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    changed = await participant_lists.change_participant_list_and_count_changes(
        connection,
        campaign,
        list_name,
        request_body.ids,
        request_body.action,
        now=now,
        may_open_to_everyone=request_body.may_open_to_everyone,
    )
    count = (await participant_lists.count_listed_people_by_list(connection, campaign.id)).get(
        list_name, ListedPeopleCount()
    )
    return ChangedParticipantsSchema(changed=changed, **count._asdict())
