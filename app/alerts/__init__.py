"""Alerts for campaign owners: shown on the campaign's page until seen, and sent by email and webhook.

`database.alerts` raises an alert in the same transaction as its cause, with one message row per receiver.
`outbox.Outbox` sends the messages by `mail` and `webhook`. `silence` raises an alert when a campaign gets no answers.
`listings` reads alerts for `pages` and `api`; `settings.AlertSettings` contains the receivers.

Open `outbox.py` first.
"""
