"""A mail by SMTP. The standard library's client in a thread: mails are rare, and it needs nothing else."""

import smtplib
import ssl
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from app.alerts.settings import is_loopback_name
from app.alerts.webhook import Undelivered

SECONDS = 20.0
LONGEST_SUBJECT = 200


def send(server: str, sender: str, receiver: str, subject: str, words: str) -> None:
    """Send a mail to one receiver. It blocks.

    Args:
        server: smtp:// or smtps://, perhaps with a name and password, which go over TLS or to this machine.
        sender: An address, perhaps with a name.
        receiver: A plain address, see `email_address`.
        subject: Anything; line breaks become blanks.
        words: The body.

    Raises:
        Undelivered: The mail could not be made, or the server did not take it.

    """
    try:
        message = mail_of(sender, receiver, subject, words)
        with connected(server) as client:
            client.send_message(message)
    except Undelivered:
        raise
    except Exception as problem:
        raise Undelivered(f"The mail was not taken ({type(problem).__name__}).") from problem


def mail_of(sender: str, receiver: str, subject: str, words: str) -> EmailMessage:
    """Return the mail. Raises what the mail library raises."""
    message = EmailMessage()
    # What looks like an encoded word would be decoded, perhaps to a line break.
    message["Subject"] = " ".join(subject.replace("=?", "= ?").split())[:LONGEST_SUBJECT]
    message["From"], message["To"] = sender, receiver
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(words, cte="quoted-printable")  # which every server passes on
    return message


def connected(server: str) -> smtplib.SMTP:
    """With TLS from the start (smtps), or as soon as the server offers it."""
    parts = urlsplit(server)
    host, tls = parts.hostname or "", ssl.create_default_context()
    if parts.scheme == "smtps":
        client: smtplib.SMTP = smtplib.SMTP_SSL(host, parts.port or 465, timeout=SECONDS, context=tls)
    else:
        client = smtplib.SMTP(host, parts.port or 587, timeout=SECONDS)
        client.ehlo_or_helo_if_needed()
        if client.has_extn("starttls"):
            client.starttls(context=tls)
        elif parts.username and not is_loopback_name(host):
            client.close()
            raise Undelivered("The mail server offers no TLS, so it was not told the password.")
    if parts.username:
        client.login(unquote(parts.username), unquote(parts.password or ""))
    return client
