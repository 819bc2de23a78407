"""JSON stored with the values of an answer, which no law reads."""

import json
from typing import Any

from app.designs.answer import Answer
from app.designs.criteria import AskedCampaign, criterion_order_as_stored_extra
from app.designs.remarks import remarks_as_stored
from app.designs.unjudged import unjudged_items_as_stored


def extra_json(campaign: AskedCampaign, answer: Answer, annotator_id: int) -> str | None:
    """Return the JSON for `responses.extra`; None where there is nothing to store.

    `annotator_id` is the id of the annotator's row.
    """
    fields: dict[str, Any] = unjudged_items_as_stored(campaign, answer) | criterion_order_as_stored_extra(
        campaign, annotator_id
    )
    fields |= remarks_as_stored(answer.remarks)
    return json.dumps(fields) if fields else None
