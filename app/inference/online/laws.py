"""Registry of the update laws by name. To add a law, add a module with a `LAW`, and one line here."""

from app.inference.online import (
    annotator_aware_law,
    bounded_ra,
    dirichlet,
    easl,
    log_normal,
    trueskill,
    trueskill_aware,
)
from app.inference.online.law import Law

ALL_ONLINE_LAWS = (
    *(easl.LAW, bounded_ra.LAW, trueskill.LAW, annotator_aware_law.LAW),
    *(trueskill_aware.LAW, dirichlet.LAW, log_normal.LAW),
)
ONLINE_LAWS: dict[str, Law] = {law.name: law for law in ALL_ONLINE_LAWS}
