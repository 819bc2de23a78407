"""Exports about annotators: who they are, decisions, arrivals for payment, steps before the work, and remarks."""

import json

from sqlalchemy import text

from app.annotation.platforms.programs import API_PLATFORM
from app.database.bulk import StatementTable
from app.record.remarks import FIND_ALL_REMARKS
from app.record.responses import COUNTING_RESPONSES_CONDITION
from app.text.spreadsheets import guard_against_formula

# One row per arrival of an annotator. `completed_at` is when the annotator was told that they are done; `hits_counted`
# omits HITs that a decision excludes; `barred` says whether the annotator is held or excluded. The visits of annotators
# of the API have no ids of their own, so `assignment` is the id that the program gave the annotator.
ASSIGNMENTS = StatementTable(
    text(f"""
    SELECT a.pseudonym AS annotator, named.name, a.platform,
           CASE WHEN a.platform = '{API_PLATFORM.name}' THEN a.worker_id ELSE s.external_id END AS assignment,
           s.arrived_at,
           count(r.seq) FILTER (WHERE r.replaces IS NULL) AS hits_answered, max(r.received_at) AS last_answer_at,
           s.completed_at, count(r.seq) FILTER (WHERE r.counts) AS hits_counted, a.barred
    FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN named_annotators named ON named.campaign_id = :campaign AND named.id = a.id
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id
    LEFT JOIN (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses WHERE campaign_id = :campaign) AS r
    ON r.campaign_id = h.campaign_id AND r.hit_id = h.id
    WHERE s.campaign_id = :campaign GROUP BY s.campaign_id, s.id, a.campaign_id, a.id, named.name ORDER BY s.id
"""),
    {"assignment": guard_against_formula},
)

# One row per annotator, with their first arrival and the HITs of all their visits.
ANNOTATORS = StatementTable(
    text(f"""
    SELECT a.pseudonym AS annotator, named.name, a.platform, min(s.arrived_at) AS arrived_at,
           count(r.seq) FILTER (WHERE r.replaces IS NULL) AS hits_answered,
           count(r.seq) FILTER (WHERE r.counts) AS hits_counted, max(r.received_at) AS last_answer_at, a.barred
    FROM annotators a JOIN named_annotators named ON named.campaign_id = :campaign AND named.id = a.id
    LEFT JOIN assignments s ON s.campaign_id = a.campaign_id AND s.annotator_id = a.id
    LEFT JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id
    LEFT JOIN (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses WHERE campaign_id = :campaign) AS r
    ON r.campaign_id = h.campaign_id AND r.hit_id = h.id
    WHERE a.campaign_id = :campaign GROUP BY a.campaign_id, a.id, named.name ORDER BY a.id
"""),
)

# One row per decision about an annotator or an answer, in order. Researchers who decided are not named.
DECISIONS = StatementTable(
    text("""
    SELECT d.seq, d.kind, coalesce(a.pseudonym, b.pseudonym) AS annotator, coalesce(a.name, b.name) AS name,
           d.response_seq AS answer, d.reason, d.decided_at
    FROM decisions d
    LEFT JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = d.annotator_id
    LEFT JOIN responses r ON r.campaign_id = d.campaign_id AND r.seq = d.response_seq
    LEFT JOIN named_annotators b ON b.campaign_id = :campaign AND b.id = r.annotator_id
    WHERE d.campaign_id = :campaign ORDER BY d.seq
"""),
    {"reason": guard_against_formula},
)

# One row per annotator and step; a consent has the hash of its text, and the campaign keeps all texts.
VISITS = StatementTable(
    text("""
    SELECT a.pseudonym AS annotator, named.name, a.platform, v.step, v.version, v.outcome, v.said,
           CASE WHEN v.step = 'consent' THEN t.sha256 END AS sha256, v.taken_at
    FROM visits v JOIN annotators a ON a.campaign_id = v.campaign_id AND a.id = v.annotator_id
    JOIN named_annotators named ON named.campaign_id = :campaign AND named.id = a.id
    LEFT JOIN consent_texts t ON t.campaign_id = v.campaign_id AND t.version = v.version
    WHERE v.campaign_id = :campaign ORDER BY v.annotator_id, v.taken_at, v.step, v.version
"""),
    {"said": lambda said: guard_against_formula(json.dumps(said, ensure_ascii=False)) if said else None},
)

# One row per item, or HIT, on which an annotator left a remark, in the order of the answers. A remark on the HIT has no
# item; `check` is true if the item is a gold or attention item.
REMARKS = StatementTable(
    text(f"""
    SELECT seq, pseudonym AS annotator, name, received_at, hit_id AS hit, segment, item, of_check AS "check",
           flag IS NOT NULL AS flagged, flag, comment, counts
    FROM ({FIND_ALL_REMARKS.text}) AS remarks ORDER BY seq, about
"""),
    {"flag": guard_against_formula, "comment": guard_against_formula},
)
