"""JSON stored with the values of an answer, which no law reads."""

import json
from typing import Any

from app.designs.answer import Answer
from app.designs.criteria import AskedCampaign, criteria_order_extra_or_empty
from app.designs.remarks import stored_remarks_or_empty
from app.designs.unjudged import stored_unjudged_reasons_or_empty


def answer_extra_json_or_none(campaign: AskedCampaign, answer: Answer, annotator_id: int) -> str | None:
    """Return the JSON for `responses.extra`; None where there is nothing to store.

    `annotator_id` is the id of the annotator's row.
    """
    fields: dict[str, Any] = stored_unjudged_reasons_or_empty(campaign, answer) | criteria_order_extra_or_empty(
        campaign, annotator_id
    )
    fields |= stored_remarks_or_empty(answer.remarks)
    return json.dumps(fields) if fields else None
