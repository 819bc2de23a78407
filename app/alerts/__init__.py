"""Alerts for campaign owners: shown on the campaign's page until seen, and sent by email and webhook.

`database.alerts` raises an alert in the transaction of its cause, with one message row per receiver. `outbox.Outbox`
sends the messages by `mail` and `webhook`. `silence` raises the alert of campaigns without answers. `listings` reads
alerts for `pages` and `api`; `settings.AlertSettings` holds the receivers.

Open `outbox.py` first.
"""
