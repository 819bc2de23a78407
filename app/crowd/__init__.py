"""Where annotators come from: one protocol, one registry (`PLATFORMS`)."""
