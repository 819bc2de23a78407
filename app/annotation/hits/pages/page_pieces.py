"""Pieces of annotators' pages, rendered once for all HITs whose pages differ in nothing but their texts and ids.

Rendering a template takes longer than storing an answer. So the page of a HIT is rendered with marks in place of the
token, the progress, the id and the texts, and divided at the marks. The page of another HIT with the same `PageKey` is
these pieces with its own values between them. A page is rendered a second time, with marks, only if its key comes again
soon: keys that do not return cost nothing. It is then compared with its pieces: pieces that give another page are never
used.
"""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple

from cachetools import LRUCache
from markupsafe import Markup, escape

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.next_hit import HitOnPage, NextHit
from app.annotation.hits.pages.steps import PageState
from app.annotation.hits.served_campaign import ServedCampaign
from app.designs.content import MAX_SPOKEN_CHARS, Content, RenderedItems, rendered_plain_items

MAX_PIECES_SIZE = 8_000_000  # characters; a page has about 10,000
KEY_SIZE = 1_000  # characters that a key and its entry count for
MAX_MISSED_KEYS = 500  # fewer than there is room for, so that pieces are still there when their key comes again
MAX_COUNT_IN_KEY = 2  # answered HITs: pages differ, besides their progress, only before the second answer

TOKEN, PROGRESS, HIT_ID = "token", "progress", "hit"
# No text of a researcher contains it, and a mark is short enough to be no wide item.
MARK_PREFIX = f"~{secrets.token_hex(5)}-"
MARK_PATTERN = re.compile(rf"{MARK_PREFIX}(\w+);")


class PageKey(NamedTuple):
    """All that the page of a HIT depends on, except its token, its progress, its id and its texts."""

    campaign_id: int
    campaign_version: str
    platform: str
    language: str
    hits_answered_at_most: int
    answered_here: bool
    item_count: int
    is_wide: bool
    is_last: bool
    has_receipt: bool


@dataclass(frozen=True)
class PagePieces:
    """Pieces of a page: fixed text and, between every two, the name of a value."""

    texts: Sequence[str]
    names: Sequence[str]

    @classmethod
    def from_marked_page(cls, page: str) -> "PagePieces":
        texts_and_names = MARK_PATTERN.split(page)
        return cls(texts_and_names[::2], texts_and_names[1::2])

    def page_html_with_values(self, values: Mapping[str, str]) -> str:
        """Return the page with these values, which are escaped as a template does."""
        escaped = {name: str(escape(value)) for name, value in values.items()}
        filled = (escaped[name] for name in self.names)
        return "".join(chain.from_iterable(zip(self.texts, (*filled, ""), strict=True)))


def approximate_bytes_of_pieces(pieces: PagePieces | None) -> int:
    return KEY_SIZE + (sum(map(len, pieces.texts)) if pieces is not None else 0)


@dataclass(frozen=True)
class PagePiecesCache:
    """Pieces of the pages of this process by key, and keys that were missed once.

    Attributes:
        pieces: The pieces; None for pages that cannot be divided into pieces.
        missed: Keys whose pages are divided if they come again.

    """

    pieces: LRUCache[PageKey, PagePieces | None] = field(
        default_factory=lambda: LRUCache(MAX_PIECES_SIZE, approximate_bytes_of_pieces), repr=False
    )
    missed: LRUCache[PageKey, None] = field(default_factory=lambda: LRUCache(MAX_MISSED_KEYS), repr=False)

    def page_html_or_none(self, key: PageKey, values: Mapping[str, str]) -> str | None:
        """Return the page with these values, or None if it must be rendered."""
        pieces = self.pieces.get(key)
        return None if pieces is None else pieces.page_html_with_values(values)

    def learn_pieces_of_rendered_page(
        self,
        key: PageKey,
        context: Mapping[str, Any],
        values: Mapping[str, str],
        page: str,
        render: Callable[[Mapping[str, Any]], str],
    ) -> None:
        """Remember the pieces of a page that was just rendered, if its key was missed before.

        Args:
            key: Key of the page.
            context: The variables of its template.
            values: Its values, as `page_values_by_mark_name` returns them.
            page: The page.
            render: Renders the template with other variables.

        """
        if key in self.pieces:
            return
        if key not in self.missed:
            self.missed[key] = None
            return
        del self.missed[key]
        pieces = PagePieces.from_marked_page(render({**context, **template_variables_with_marks(context)}))
        is_usable = (
            pieces.page_html_with_values(values) == page and approximate_bytes_of_pieces(pieces) <= self.pieces.maxsize
        )
        self.pieces[key] = pieces if is_usable else None


class CampaignOfPieces:
    """The part of an assignment that `PageKey` knows: its campaign, and what is answered, as far as the key knows it.

    A greater number of answers is a wrong one here: a page that shows it differs from its pieces, so they are not used.
    """

    def __init__(self, assignment: AssignmentState) -> None:
        self.campaign: ServedCampaign = assignment.campaign
        is_in_key = assignment.hits_answered < MAX_COUNT_IN_KEY
        self.hits_answered = assignment.hits_answered if is_in_key else assignment.hits_answered + 1
        self.answered_here = assignment.answered_here

    def __getattr__(self, name: str) -> object:
        """Return a setting of the campaign."""
        setting: object = getattr(self.campaign, name)
        return setting


def can_page_be_made_of_pieces(next_hit: NextHit, page_state: PageState) -> bool:
    """Return whether a page has a HIT and depends on nothing but its `PageKey` and its values.

    It also depends on anything entered, refused or changed, and on the texts of items unless they are short and shown
    as they are.
    """
    hit = next_hit.hit
    return (
        hit is not None
        and not hit.draft
        and not next_hit.block_notice
        and hit.source_and_reference is None
        and is_page_of_stored_answer(page_state)
        and has_plain_pages(next_hit.assignment.campaign)
        and all(len(shown) <= MAX_SPOKEN_CHARS for shown in hit.texts)
    )


def build_page_key(next_hit: NextHit, page_state: PageState, *, language: str, is_last: bool) -> PageKey:
    """Return the key of a page for which `can_page_be_made_of_pieces` is true."""
    assignment, hit = next_hit.assignment, next_hit.hit
    assert hit is not None  # noqa: S101  (it has a HIT)
    return PageKey(
        campaign_id=assignment.campaign_id,
        campaign_version=assignment.campaign_version,
        platform=assignment.platform,
        language=language,
        hits_answered_at_most=min(assignment.hits_answered, MAX_COUNT_IN_KEY),
        answered_here=assignment.answered_here,
        item_count=len(hit.items),
        is_wide=rendered_plain_items(hit.texts).is_wide,
        is_last=is_last,
        has_receipt=page_state.receipt is not None,
    )


def is_page_of_stored_answer(page_state: PageState) -> bool:
    """Return whether a page shows nothing besides the HIT but that the answer before it is stored."""
    receipt = page_state.receipt
    nothing_else = replace(page_state, receipt=None, answered_hit_id=None) == PageState()
    return nothing_else and (receipt is None or not receipt.repeated)


def has_plain_pages(campaign: ServedCampaign) -> bool:
    """Return whether pages show items as they are, once each, without anything that depends on their words."""
    return (
        Content.from_campaign(campaign).is_plain_text
        and not campaign.has_criteria
        and not campaign.segment_count
        and not campaign.cannot_be_judged
        and not campaign.gold_feedback
        and campaign.flag_on == campaign.comment_on == "none"
    )


def page_values_by_mark_name(token: str, progress: str, hit: HitOnPage) -> dict[str, str]:
    """Return the values that differ between pages with the same key, by the names of their marks.

    Args:
        token: Token of the page.
        progress: Safe HTML.
        hit: HIT of the page.

    """
    texts = {str(place): shown for place, shown in enumerate(hit.texts)}
    return {TOKEN: token, PROGRESS: Markup(progress), HIT_ID: str(hit.id), **texts}  # noqa: S704  (from a template)


def template_variables_with_marks(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a page that depend on more than its key, with marks for what differs."""
    next_hit: NextHit = context["next_hit"]
    rendered: RenderedItems = context["rendered"]
    marks = {name: f"{MARK_PREFIX}{name};" for name in page_values_by_mark_name("", "", next_hit.hit)}  # type: ignore[arg-type]
    texts = [marks[str(place)] for place in range(len(rendered.items))]
    return {
        "token": marks[TOKEN],
        "progress": marks[PROGRESS],
        "next_hit": SimpleNamespace(hit=SimpleNamespace(id=marks[HIT_ID], draft={}), block_notice=""),
        "rendered": RenderedItems(texts, texts, is_always_wide=rendered.is_wide),
        "campaign": CampaignOfPieces(context["campaign"]),
    }
