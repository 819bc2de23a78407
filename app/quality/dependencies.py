"""Objects of the application that the routes of annotators' pages and of the API share."""

from typing import Annotated

from app.http.dependencies import dependency_on_app_state
from app.quality.annotators import MedianSecondsCache
from app.quality.peer_agreement import AnnotatorComparisons
from app.record.due_revisions import DueRevisions

Revisions = Annotated[DueRevisions, dependency_on_app_state("due_revisions")]
Comparisons = Annotated[AnnotatorComparisons, dependency_on_app_state("comparisons")]
Medians = Annotated[MedianSecondsCache, dependency_on_app_state("median_seconds")]
