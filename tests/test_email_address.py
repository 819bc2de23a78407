"""One rule says what an e-mail address is, and it takes none that a mail library stumbles over."""

from email.message import EmailMessage

import pytest

from app.text.email_address import is_email_address, parse_email_address

ORDINARY = [
    "ada@example.org",
    "ada.lovelace+alerts@mail.example.co.uk",
    "O'Brien_1@xn--bcher-kva.example",
    "a@localhost",
    f"{'a' * 64}@example.org",
]
REFUSED = [
    "",
    "admin",
    "@example.org",
    "ada@",
    "ada@@example.org",
    "n7@evil.org@example.org",
    "=?utf-8?q?=0d=0a?=@b.c",
    "'ada.:lovelace'@lab.org",
    ".ada@example.org",
    "ada.@example.org",
    "ada..l@example.org",
    "ada(home@example.org",
    "ada@example.org(work)",
    '"ada"@example.org',
    "Ada <ada@example.org>",
    "ada@[127.0.0.1]",
    "ada@-example.org",
    "ada@example-.org",
    "ada@example..org",
    "ada@example.org.",
    "ada@exämple.org",
    "ädä@example.org",
    "\u212aim@example.org",
    "ada@example.org\u3000",
    "ada@example.org\r\nBcc: eve@example.org",
    "ada@example.org\n",
    "ada@example.org\x00",
    "ada,bea@example.org",
    "ada;bea@example.org",
    "ada bea@example.org",
    f"{'a' * 65}@example.org",
    f"ada@{'a' * 64}.org",
    f"ada@{'a.' * 130}org",
]


def test_ordinary_addresses_are_taken_as_they_are_and_fit_into_a_mail(subtests):
    for address in ORDINARY:
        with subtests.test(address=address):
            assert parse_email_address(f"  {address}\t") == address
            message = EmailMessage()
            message["To"] = address
            assert message["To"].addresses[0].addr_spec == address


def test_other_texts_are_refused_with_a_sentence(subtests):
    for address in REFUSED:
        with subtests.test(address=address):
            assert not is_email_address(address)
            with pytest.raises(ValueError, match="is not an e-mail address such as"):
                parse_email_address(address)


def test_a_long_text_is_neither_repeated_whole_nor_slow():
    with pytest.raises(ValueError, match="is not an e-mail address") as refusal:
        parse_email_address("a." * 500_000 + "@" + "b-" * 500_000)
    assert len(str(refusal.value)) < 250
