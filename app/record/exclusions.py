"""SQL for the answers of a campaign that do not count."""


def excluded_annotators_and_responses_sql(campaign: str, last_decision: str) -> str:
    """Return a query for the annotators and the responses that decisions exclude, one of both columns NULL in each row.

    Args:
        campaign: SQL for the campaign's id.
        last_decision: SQL for the number of the last decision to follow.

    """
    return f"""
    SELECT latest.annotator_id, latest.response_seq FROM (
        SELECT DISTINCT ON (d.annotator_id, d.response_seq) d.annotator_id, d.response_seq, d.kind
        FROM decisions d WHERE d.campaign_id = {campaign} AND d.seq <= {last_decision}
        ORDER BY d.annotator_id, d.response_seq, d.seq DESC
    ) AS latest WHERE latest.kind <> 'include'
    UNION ALL
    SELECT NULL, r.seq FROM responses r
    WHERE r.campaign_id = {campaign} AND r.replaces > 0 AND NOT EXISTS (
        SELECT FROM decisions d WHERE d.campaign_id = {campaign} AND d.response_seq = r.replaces
        AND d.kind = 'withdraw' AND d.seq <= {last_decision})"""
