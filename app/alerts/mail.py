"""Mails by SMTP. The standard library's client in a thread is enough: mails are rare."""

import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid, parseaddr
from urllib.parse import unquote, urlsplit

from app.alerts.settings import is_loopback_name
from app.alerts.webhook import DeliveryFailed

MAIL_TIMEOUT_SECONDS = 20.0
MAX_MAIL_SUBJECT_CHARACTERS = 200


def send_mail(server_url: str, sender: str, receiver: str, subject: str, body: str) -> None:
    """Send a mail to one receiver. This call blocks.

    Args:
        server_url: An smtp:// or smtps:// URL, perhaps with a name and password. These are sent only over TLS or to
            this machine.
        sender: An address, perhaps with a name.
        receiver: A plain address, see `email_address`.
        subject: Any text; line breaks become blanks.
        body: The text of the mail.

    Raises:
        DeliveryFailed: The mail could not be made, or the server did not accept it.

    """
    try:
        message = build_mail_message(sender, receiver, subject, body)
        with connect_and_log_in_to_mail_server(server_url) as client:
            client.send_message(message)
    except DeliveryFailed:
        raise
    except Exception as problem:
        raise DeliveryFailed(f"The mail server did not accept the mail ({type(problem).__name__}).") from problem


def build_mail_message(sender: str, receiver: str, subject: str, body: str) -> EmailMessage:
    """Return the mail. Raises what the mail library raises."""
    message = EmailMessage()
    # A mail client would decode text that looks like an encoded word, perhaps to a line break.
    message["Subject"] = " ".join(subject.replace("=?", "= ?").split())[:MAX_MAIL_SUBJECT_CHARACTERS]
    message["From"], message["To"] = sender, receiver
    # Not every mail server adds these two, and filters distrust mail without them.
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = make_msgid(domain=parseaddr(sender)[1].rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(body, cte="quoted-printable")  # which every server passes on
    return message


def connect_and_log_in_to_mail_server(server_url: str) -> smtplib.SMTP:
    """Connect with TLS from the start (smtps), or as soon as the server offers it, and log in."""
    parts = urlsplit(server_url)
    host, tls_context = parts.hostname or "", ssl.create_default_context()
    if parts.scheme == "smtps":
        client: smtplib.SMTP = smtplib.SMTP_SSL(
            host, parts.port or 465, timeout=MAIL_TIMEOUT_SECONDS, context=tls_context
        )
    else:
        client = smtplib.SMTP(host, parts.port or 587, timeout=MAIL_TIMEOUT_SECONDS)
        client.ehlo_or_helo_if_needed()
        if client.has_extn("starttls"):
            client.starttls(context=tls_context)
        elif parts.username and not is_loopback_name(host):
            client.close()
            raise DeliveryFailed("The mail server offers no TLS, so Easel did not send the password.")
    if parts.username:
        client.login(unquote(parts.username), unquote(parts.password or ""))
    return client
