"""Addresses of campaigns and of experiments, which redirect each visitor to a random arm."""

EXPERIMENT_PATH_PREFIX = "/experiment"  # before the path of a campaign; the key is then that of an experiment


def link_base(base_url: str, link_key: str, experiment_key: str | None) -> tuple[str, str]:
    """Return the base address and the key for the links of a campaign; for an arm of an experiment, those of the
    experiment. `experiment_key` is None if the campaign is no arm.
    """
    return (base_url, link_key) if experiment_key is None else (base_url + EXPERIMENT_PATH_PREFIX, experiment_key)
