"""Rules of erasure, and the file that lists erasures."""

from typing import Literal

ErasureRule = Literal["anonymise", "remove"]
RULE_SENTENCES: dict[ErasureRule, str] = {
    "anonymise": "Ids, names and free text are erased. The judgments stay, and no score changes.",
    "remove": "Ids, names and free text are erased, and all answers are removed. Scores are computed without them.",
}

ERASURE_LIST_NAME = "erasures.jsonl"  # next to backups
