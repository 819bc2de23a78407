"""The bare writes of a pair of HIT and answer, run by PostgreSQL's pgbench."""

import re
import subprocess
import tempfile

from sqlalchemy import make_url

from app.database import embedded

PGBENCH_SCRIPT = """
\\set item random(0, :items - 5)
BEGIN;
SELECT subject FROM posteriors
    WHERE campaign_id = :campaign AND revision = 0 AND criterion = 0 AND subject BETWEEN :item AND :item + 4
    ORDER BY subject FOR NO KEY UPDATE;
INSERT INTO hits (campaign_id, annotator_id, assignment_id, leader, items, issued_at, expires_at, closed_at)
    VALUES (:campaign, :annotator, :assignment, :item, ARRAY[:item, :item+1, :item+2, :item+3, :item+4],
            now(), now(), now())
    RETURNING id \\gset
COMMIT;
BEGIN;
UPDATE hits SET closed_at = now() WHERE campaign_id = :campaign AND id = :id;
SELECT state FROM posteriors
    WHERE campaign_id = :campaign AND revision = 0 AND criterion = 0 AND subject BETWEEN :item AND :item + 4
    ORDER BY subject FOR NO KEY UPDATE;
INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at)
    VALUES (:campaign, :id, :annotator, 'bench', ARRAY[:item, :item+1, :item+2, :item+3, :item+4],
            ARRAY[1, 2, 3, 4, 5], now());
UPDATE posteriors SET state[1] = state[1] + 0.5, judgments = judgments + 1
    WHERE campaign_id = :campaign AND revision = 0 AND criterion = 0 AND subject BETWEEN :item AND :item + 4;
COMMIT;
"""


def run_pgbench(url: str, slug: str, clients: int, seconds: float) -> float:
    """Return pairs per second of the bare transactions on the campaign's rows."""
    address = make_url(url)
    binaries = next(embedded.iterate_binary_folders())
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(PGBENCH_SCRIPT)
        script.flush()
        connect = ["-h", str(address.query["host"]), "-U", str(address.username), str(address.database)]
        find_sql = (
            "SELECT c.id, a.id, s.id, (SELECT count(*) FROM items WHERE campaign_id = c.id) FROM campaigns c "
            f"JOIN annotators a ON a.campaign_id = c.id JOIN assignments s ON s.annotator_id = a.id "
            f"WHERE c.slug = '{slug}' LIMIT 1"
        )
        psql = [str(binaries / "psql"), "-AtF", " ", "-c", find_sql, *connect]
        numbers = subprocess.run(psql, check=True, capture_output=True, text=True).stdout.split()
        variables = zip(("campaign", "annotator", "assignment", "items"), numbers, strict=True)
        command = [str(binaries / "pgbench"), "-n", "-M", "prepared", "-c", str(clients), "-T", str(round(seconds))]
        for name, number in variables:
            command += ["-D", f"{name}={number}"]
        output = subprocess.run([*command, "-f", script.name, *connect], check=True, capture_output=True, text=True)
    return float(re.search(r"tps = ([\d.]+)", output.stdout)[1])  # type: ignore[index]  # fails loudly
