"""What lies beside the values of an answer, which no law reads."""

import json
from typing import Any

from app.designs import criteria, unjudged
from app.designs.answer import Answer
from app.designs.remarks import remarks_said


def extra(campaign: Any, answer: Answer, annotator: int) -> str | None:
    """As `responses.extra` has it, JSON; None where nothing does. annotator: their row's id."""
    beside: dict[str, Any] = unjudged.said(campaign, answer) | criteria.order_said(campaign, annotator)
    beside |= remarks_said(answer.remarks)
    return json.dumps(beside) if beside else None
