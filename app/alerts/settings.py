"""Settings of alerts: receivers, and the time after which silence is an alert."""

import ipaddress
import re
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, field_validator

from app.designs.field_flags import EDITABLE, PRIVATE, InputModel
from app.text.email_address import EmailAddress, is_email_address

WebhookAddress = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
WEBHOOK_ADDRESS_PATTERN = re.compile(r"https?://[!-~]+")


class AlertSettings(InputModel):
    """Settings of alerts of a campaign."""

    alert_emails: Annotated[list[EmailAddress], Field(max_length=10)] = Field(
        default=[], title="E-mail addresses for alerts", json_schema_extra=EDITABLE | PRIVATE,
        description="One per line, up to 10. Each gets all alerts of this campaign.",
    )  # fmt: skip
    alert_webhook: WebhookAddress | None = Field(
        default=None, title="Webhook for alerts", json_schema_extra=EDITABLE | PRIVATE,
        description="An https:// address that receives all alerts as signed JSON.",
    )  # fmt: skip
    alert_quiet_minutes: int | None = Field(
        default=None, ge=5, le=10_080, title="Alert after silence (minutes)", json_schema_extra=EDITABLE,
        description="Alert me if no answer arrives for this many minutes while the campaign runs.",
    )  # fmt: skip

    @field_validator("alert_emails", mode="before")
    @classmethod
    def split_address_lines(cls, addresses: object) -> object:
        """Split a text into lines, as forms and the command line send it."""
        if isinstance(addresses, str):
            return [line for line in addresses.splitlines() if line.strip()]
        return addresses

    @field_validator("alert_webhook")
    @classmethod
    def require_plain_webhook_host(cls, webhook: str | None) -> str | None:
        """Refuse URLs without a host, or with a name or password."""
        if webhook is not None:
            parts = urlsplit(webhook if WEBHOOK_ADDRESS_PATTERN.fullmatch(webhook) else "")
            if not parts.hostname or parts.username or parts.password or parts.port == 0:
                raise ValueError("must be an address such as https://example.org/hook, without a name or password")
        return webhook


def deliverable_addresses(addresses: Sequence[str]) -> list[str]:
    """Return the stored addresses of a campaign that mails can be sent to; earlier versions accepted others too."""
    return [address for address in addresses if is_email_address(address)]


def undeliverable_addresses(addresses: Sequence[str]) -> list[str]:
    """Return the stored addresses that mails cannot be sent to, which the page of alerts lists."""
    return [address for address in addresses if not is_email_address(address)]


def is_loopback_name(host: str) -> bool:
    """Return whether a host name explicitly means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
