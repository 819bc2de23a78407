"""Check of the addresses in settings that Easel's server calls: without TLS only where the operator allows it."""

from app.annotation.platforms.settings import CALL_SETTING_NAMES
from app.campaigns.settings import CampaignSettings
from app.errors import Invalid
from app.settings import settings_in_use

SETTINGS_WITH_CALLED_ADDRESSES = ("alert_webhook", *CALL_SETTING_NAMES)
ADDRESS_SCHEME_WITHOUT_TLS = "http://"


def refuse_called_addresses_without_tls(
    settings: CampaignSettings, former_settings: CampaignSettings | None = None
) -> None:
    """Raise `Invalid` (`address_without_tls`) for a new `http://` address that Easel's server would never call.

    Args:
        settings: The new settings.
        former_settings: The settings before the change, whose addresses stay; None for a new campaign.

    """
    for setting in SETTINGS_WITH_CALLED_ADDRESSES:
        address = getattr(settings, setting)
        is_new = former_settings is None or address != getattr(former_settings, setting)
        is_without_tls = isinstance(address, str) and address.startswith(ADDRESS_SCHEME_WITHOUT_TLS)
        if is_new and is_without_tls and not settings_in_use().webhooks_inside:
            raise Invalid(
                "Easel calls addresses only over TLS: begin it with https://. For an address in its own network, the "
                "person who runs this server can set EASEL_WEBHOOKS_INSIDE=1. Nothing was changed.",
                code="address_without_tls",
                setting=setting,
            )
