"""Objects of the application that the routes of annotators' pages and of the API share."""

from typing import Annotated

from app.http.dependencies import depends_on_app_state
from app.quality.annotators import MedianSecondsCache
from app.quality.peer_agreement import AnnotatorComparisons
from app.record.due_revisions import DueRevisions

Revisions = Annotated[DueRevisions, depends_on_app_state("due_revisions")]
Comparisons = Annotated[AnnotatorComparisons, depends_on_app_state("comparisons")]
Medians = Annotated[MedianSecondsCache, depends_on_app_state("median_seconds")]
