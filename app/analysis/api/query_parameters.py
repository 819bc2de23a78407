"""Query parameters that several routes of analyses share."""

from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator

from app.analysis.result_types import MAX_CLASSES
from app.analysis.subgroups import MAX_GROUP_CHARACTERS
from app.http.paging import value_without_nul_or_raise

RowOffsetQuery = Annotated[int, Query(ge=0, le=2**31)]
RowLimitQuery = Annotated[int, Query(ge=1, le=10_000)]
ClassCountQuery = Annotated[
    int,
    Query(
        ge=2,
        le=MAX_CLASSES,
        description="Number of labels into which scores are cut; ignored if annotators choose labels.",
    ),
]


CriterionQuery = Annotated[
    str,
    Query(max_length=200, description="Name of a criterion, if the campaign has several. Default: the first."),
    AfterValidator(value_without_nul_or_raise),
]


GroupQuery = Annotated[
    str,
    Query(
        max_length=MAX_GROUP_CHARACTERS,
        description=(
            "Only annotators who gave this answer to a profile question (`question=answer`), or any other answer "
            "(`question!=answer`). Default: all."
        ),
    ),
    AfterValidator(value_without_nul_or_raise),
]
