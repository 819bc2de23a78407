"""Orders and lengths of the lists of annotators and findings; commands import them for their help."""

from typing import Literal

AnnotatorSort = Literal["name", "answers", "seconds", "last", "standing"]
MAX_FINDINGS_SHOWN = 200
