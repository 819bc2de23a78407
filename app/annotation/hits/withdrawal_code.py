"""Codes by which annotators can be found later, and whether they may withdraw by themselves.

A code follows from the server's key, so every page shows the same one. The database has only its hash.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from urllib.parse import urlencode

from sqlalchemy import text

from app.annotation.hits.next_hit import NextHit
from app.annotation.platforms.registry import PLATFORMS
from app.database.session import Driver, Record, execute_statement, fetch_first_row_or_none

CODE_BITS, LETTERS_PER_GROUP = 50, 5

SELECT_WITHDRAWAL_SETTING = text("""
    SELECT coalesce(visit_settings ->> 'withdrawal', 'ask') = 'self' AS is_self,
           coalesce(visit_settings ->> 'study_contact', '') AS contact
    FROM campaigns WHERE id = :campaign
""")

# Retention deletes the codes of a finished campaign with the ids, so none is stored afterwards.
STORE_CODE_HASH = text("""
    INSERT INTO withdrawal_codes (campaign_id, annotator_id, code_hash)
    SELECT CAST(:campaign AS bigint), CAST(:annotator AS bigint), CAST(:code_hash AS bytea)
    WHERE NOT EXISTS (
        SELECT FROM retention_runs r JOIN campaigns c ON c.id = r.campaign_id
        WHERE r.campaign_id = :campaign AND r.kind = 'identifiers' AND c.status = 'finished')
    ON CONFLICT (campaign_id, annotator_id) DO UPDATE SET code_hash = EXCLUDED.code_hash
    WHERE withdrawal_codes.code_hash <> EXCLUDED.code_hash
""")


@dataclass(frozen=True)
class WithdrawalOffer:
    """The code of an annotator, whether their page lets them have their answers removed, and the address for that.

    `contact` is whom to write to, as the settings name it; empty if they do not.
    """

    code: str
    is_self: bool
    address: str
    contact: str


class WithdrawalCodes:
    """Codes of the annotators of this server."""

    def __init__(self, secret_key: str) -> None:
        self._key = secret_key.encode()

    def code_of_annotator(self, campaign_id: int, annotator_id: int) -> str:
        """Return the code of an annotator, such as K3QZB-7TRWA."""
        message = f"withdrawal {campaign_id} {annotator_id}".encode()
        digest = hmac.new(self._key, message, hashlib.sha256).digest()
        letters = base64.b32encode(digest)[: CODE_BITS // 5].decode()
        return f"{letters[:LETTERS_PER_GROUP]}-{letters[LETTERS_PER_GROUP:]}"


def withdrawal_code_hash(code: str) -> bytes:
    """Return the hash by which a withdrawal code is stored; blanks, hyphens and case do not matter."""
    letters = code.upper().replace("-", "").replace(" ", "")
    return hashlib.sha256(letters.encode()).digest()


async def load_withdrawal_offer_and_store_code_hash_or_none(
    connection: Driver, codes: WithdrawalCodes, next_hit: NextHit, token: str
) -> WithdrawalOffer | None:
    """Return the code to show at the end of a visit, and store its hash; None if there is nothing to find. The token is
    that of the annotator.
    """
    assignment = next_hit.assignment
    if next_hit.reason != "withdrawn" and not (next_hit.is_finished and assignment.hits_answered):
        return None
    code = codes.code_of_annotator(assignment.campaign_id, assignment.annotator_id)
    key = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
    await execute_statement(connection, STORE_CODE_HASH, {**key, "code_hash": withdrawal_code_hash(code)})
    row = await fetch_first_row_or_none(
        connection, SELECT_WITHDRAWAL_SETTING, {"campaign": assignment.campaign_id}, Record
    )
    entry_path = PLATFORMS[assignment.platform].entry_path(assignment.link_key)
    address = f"{entry_path}/withdraw?{urlencode({'t': token})}"
    return WithdrawalOffer(code, bool(row and row["is_self"]), address, row["contact"] if row else "")
