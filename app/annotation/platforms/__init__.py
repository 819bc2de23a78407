"""Where annotators come from: one contract, a module or a folder per platform, one registry (`PLATFORMS`)."""
