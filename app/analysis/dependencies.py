"""Functions that the routes of analysis pages and of the API share."""

from typing import Annotated

from fastapi import Request

from app.accounts.access import require_need
from app.accounts.guards import CurrentAccess
from app.accounts.roles import SEE_PEOPLE
from app.analysis.fit_cache import FitCache
from app.analysis.methods import is_about_annotators
from app.http.dependencies import dependency_on_app_state

ProcessFits = Annotated[FitCache, dependency_on_app_state("fits")]


async def refuse_annotator_tables_without_access(request: Request, access: CurrentAccess) -> None:
    """Refuse users who may not see people where single annotators, or groups by their profile, are shown.

    Raises:
        Forbidden: `role_forbids`.

    """
    table_or_section = request.path_params.get("name") or request.path_params.get("section", "")
    if request.query_params.get("group") or is_about_annotators(table_or_section):
        require_need(access, SEE_PEOPLE)
