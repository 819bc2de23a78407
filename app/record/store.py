"""How posteriors change: in one statement, however many there are."""

from sqlalchemy import text

# New values of :numbers, and so many judgments more. Whoever sends it holds their locks.
UPDATE = """
    UPDATE posteriors p
    SET state = ARRAY[new.a, new.b], score = new.score, variance = new.variance,
        judgments = p.judgments + new.judgments
    FROM unnest(CAST(:numbers AS int[]), CAST(:a AS float8[]), CAST(:b AS float8[]), CAST(:score AS float8[]),
                CAST(:variance AS float8[]), CAST(:more AS int[]))
         AS new (number, a, b, score, variance, judgments)
    WHERE p.campaign_id = :campaign AND p.revision = :revision AND p.criterion = 0 AND p.subject = new.number
    RETURNING p.subject AS number, p.judgments"""

UPDATE_POSTERIORS = text(UPDATE)
