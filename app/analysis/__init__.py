"""After (and during) a campaign: replay, verification and export."""
