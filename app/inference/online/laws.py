"""The update laws by name. A new one is a module with a `LAW`, and one line here."""

from app.inference.online import annotator_aware_law, bounded_ra, easl, trueskill
from app.inference.online.law import Law

ONLINE: dict[str, Law] = {law.name: law for law in (easl.LAW, bounded_ra.LAW, trueskill.LAW, annotator_aware_law.LAW)}
