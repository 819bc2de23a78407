"""During a campaign: which HIT an annotator gets, how long it is held, and what becomes of the answer."""
