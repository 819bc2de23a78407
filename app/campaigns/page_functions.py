"""Functions that templates of other rooms call, which may not import them themselves."""

from collections.abc import Callable
from typing import Any

from app.campaigns.proposed_budget import proposed_budget_text_or_empty
from app.campaigns.setup_rail import numbered_steps_of_draft
from app.designs.person_work import work_of_one_person
from app.privacy.deletion_notice import deletion_notice_or_empty

PAGE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "draft_steps": numbered_steps_of_draft,
    "work_of_one_person": work_of_one_person,
    "proposed_budget": proposed_budget_text_or_empty,
    "deletion_notice": deletion_notice_or_empty,
}
