"""Where people come in: at a campaign, or at an experiment, which leads each of them to one of its arms at random."""

EXPERIMENT_PATH_PREFIX = "/experiment"  # before the address of a campaign: there the key is that of an experiment


def link_base(base_url: str, link_key: str, experiment_key: str | None) -> tuple[str, str]:
    """What `links` makes the links of a campaign of, by its key; of an arm those of its experiment, by the key of that,
    which is None for a campaign that is no arm.
    """
    return (base_url, link_key) if experiment_key is None else (base_url + EXPERIMENT_PATH_PREFIX, experiment_key)
