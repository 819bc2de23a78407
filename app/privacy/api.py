"""API of people's data: find a person, download their data, erase them."""

from datetime import datetime
from typing import Annotated

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from app.accounts.guards import program_router
from app.designs.field_flags import RequestBody
from app.http.dependencies import (
    AppSettings,
    Database,
    Now,
    Transaction,
    content_disposition_headers,
    openapi_description_of_refusals,
)
from app.privacy.consent_changes import load_consent_warnings
from app.privacy.consent_text import StudyFacts, draft_consent_text
from app.privacy.dependencies import Erasures, PersonPathName, ReceiptNumber
from app.privacy.erasure_rule import ErasureRule
from app.privacy.erasures import erase_person_and_return_erasure, list_erasures, load_erasure_or_refuse
from app.privacy.person_export import build_person_zip_and_log
from app.privacy.person_search import MAX_TERM_CHARACTERS, find_people_and_log_search, load_person_by_name_or_refuse
from app.record.campaign import load_campaign_by_slug_or_refuse

router = program_router("/api/v1/campaigns/{slug}", "People’s data")


class PersonSearch(RequestBody):
    term: Annotated[
        str,
        Field(
            max_length=MAX_TERM_CHARACTERS,
            description="A platform’s id of the person or the submission, the name or mail address of a personal link, "
            "an id on a list, a pseudonym, a name such as A7, a withdrawal code, or the number of a receipt.",
        ),
    ]


class StoredPersonSchema(BaseModel):
    """A person who was found: an annotator, or someone with a personal link or on a list who never came."""

    model_config = ConfigDict(from_attributes=True)

    name: str = Field(
        description="A1 for the first annotator, as on pages; L1 for the first link, if not opened yet; P1 "
        "for the first entry of a list, if only lists name the person."
    )
    pseudonym: str = Field(description="Empty if the person never came.")
    platform: str = Field(description="Empty if only lists name the person.")
    arrived_at: datetime = Field(description="When the annotator came, or the link or the entry of a list was made.")
    answers: int = Field(description="Answered HITs.")
    receipt: str | None = Field(description="Receipt of the latest erasure; null if the person was not erased.")
    rule: ErasureRule | None


class ErasureRequest(RequestBody):
    rule: ErasureRule = Field(
        description="anonymise: ids, names and free text are erased; judgments stay. remove: the answers, too."
    )


class ErasureSchema(BaseModel):
    """Receipt of an erasure. It does not name the person."""

    model_config = ConfigDict(from_attributes=True)

    receipt: str
    rule: ErasureRule
    requested_by: str
    requested_at: datetime
    due_at: datetime = Field(description="Until then, the annotator can take the request back.")
    identifiers_erased_at: datetime | None = Field(description="When ids, names and free text were erased.")
    finished_at: datetime | None = Field(description="When all was erased, and scores were computed without it.")
    counts: dict[str, int] = Field(description="Number of `answers`, and of changed rows by table.")


class ConsentTextSchema(BaseModel):
    text: str = Field(description="A consent text in Markdown, with blanks in square brackets.")
    warnings: list[str] = Field(
        description="What the campaign’s own consent text lacks, or says differently from the settings."
    )


@router.get("/consent-text", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def get_consent_text(connection: Transaction, settings: AppSettings, slug: str) -> ConsentTextSchema:
    """Return a consent text made from the campaign's settings, and warnings about its current text."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return ConsentTextSchema(
        text=draft_consent_text(StudyFacts.from_campaign(campaign), settings.retention_days),
        warnings=await load_consent_warnings(connection, campaign, settings.retention_days),
    )


@router.post(
    "/persons/search",
    responses=openapi_description_of_refusals(
        {404: "`campaign_not_found`", 422: "`invalid`, `person_missing`, `person_too_long`"}
    ),
)
async def search_persons(connection: Transaction, slug: str, body: PersonSearch) -> list[StoredPersonSchema]:
    """Return the annotators whom a term names, at most 50. The audit log has the search without the term."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return [
        StoredPersonSchema.model_validate(person)
        for person in await find_people_and_log_search(connection, campaign, body.term)
    ]


@router.get(
    "/persons/{person}/export",
    response_class=Response,
    responses=openapi_description_of_refusals({404: "`campaign_not_found`, `annotator_not_found`"}),
)
async def export_person(connection: Transaction, slug: str, person: PersonPathName, now: Now) -> Response:
    """Download all data about a person: a ZIP with `person.json` and a CSV for each table."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    found = await load_person_by_name_or_refuse(connection, campaign, person)
    content = await build_person_zip_and_log(connection, campaign, found, now=now)
    headers = content_disposition_headers(slug, f"person-{found.name}", "zip", now=now)
    return Response(content, media_type="application/zip", headers=headers | {"Cache-Control": "no-store"})


@router.post(
    "/persons/{person}/erasure",
    responses=openapi_description_of_refusals(
        {
            404: "`campaign_not_found`, `annotator_not_found`",
            409: "`already_erased`, `already_withdrawn`, `not_replayable`",
            422: "`invalid`",
        }
    ),
)
async def erase_person_from_api(
    database: Database, erasures: Erasures, slug: str, person: PersonPathName, *, body: ErasureRequest, now: Now
) -> ErasureSchema:
    """Erase a person. It cannot be undone.

    The reply comes when all is erased and scores are computed without it; annotation continues meanwhile. The erasure
    is valid from the start, even if the reply does not arrive.
    """
    erasure = await erase_person_and_return_erasure(database, slug, person, body.rule, now=now)
    await erasures.start_and_wait(erasure, now=now)
    async with database.connect() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return ErasureSchema.model_validate(await load_erasure_or_refuse(connection, campaign, erasure.receipt))


@router.get("/erasures", responses=openapi_description_of_refusals({404: "`campaign_not_found`"}))
async def list_erasure_receipts(connection: Transaction, slug: str) -> list[ErasureSchema]:
    """Return the receipts of all erasures of a campaign, newest first."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return [ErasureSchema.model_validate(erasure) for erasure in await list_erasures(connection, campaign)]


@router.get(
    "/erasures/{receipt}",
    responses=openapi_description_of_refusals({404: "`campaign_not_found`, `receipt_not_found`"}),
)
async def get_erasure_receipt(connection: Transaction, slug: str, receipt: ReceiptNumber) -> ErasureSchema:
    """Return the receipt of an erasure."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return ErasureSchema.model_validate(await load_erasure_or_refuse(connection, campaign, receipt))
