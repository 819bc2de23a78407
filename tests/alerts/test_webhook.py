"""A webhook is signed, goes where it may, and ends in time."""

import asyncio
import hashlib
import hmac
import json
import socket
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.alerts import webhook
from app.alerts.webhook import DeliveryFailed, is_public_address, post_signed_webhook
from tests.alerts.receivers import webhook_receiver

KEY = "k" * 64


async def test_the_receiver_can_check_the_signature_by_what_the_documentation_says():
    with webhook_receiver() as got:
        await post_signed_webhook(got.address, {"kind": "held", "about": "A7"}, KEY, 1_700_000_000, allow_private=True)
    ((headers, body),) = got.messages
    assert json.loads(body) == {"kind": "held", "about": "A7"}
    signed = headers["Easel-Timestamp"].encode() + b"." + body
    assert headers["Easel-Signature"] == "v1=" + hmac.new(KEY.encode(), signed, hashlib.sha256).hexdigest()


def test_each_campaign_signs_by_a_key_of_its_own():
    keys = {
        webhook.signing_key_of_campaign_webhook("secret", 1),
        webhook.signing_key_of_campaign_webhook("secret", 2),
        webhook.signing_key_of_campaign_webhook("other", 1),
    }
    assert {len(key) for key in keys} == {64}
    assert len(keys) == 3


async def test_every_status_of_success_counts_as_delivered():
    for status in (200, 202, 299):
        with webhook_receiver(status) as got:
            await post_signed_webhook(got.address, {}, KEY, 1, allow_private=True)
        assert len(got.messages) == 1


async def test_what_is_not_taken_is_not_delivered_and_no_redirect_is_followed(subtests):
    for status in (301, 302, 307, 308, 400, 500):
        with subtests.test(status=status), webhook_receiver(status) as got:
            with pytest.raises(DeliveryFailed, match=str(status)):
                await post_signed_webhook(got.address, {}, KEY, 1, allow_private=True)
            assert len(got.messages) == 1


def test_private_networks_are_known_however_they_are_written(subtests):
    for address in (
        "10.0.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "fe80::1%eth0",
        "fc00::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "224.0.0.1",
        "ff02::1",
        "::ffff:7f00:1",
        "::ffff:169.254.169.254",
        "::ffff:0:10.0.0.1",
        "::10.0.0.1",
        "::127.0.0.1",
        "::",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2002:5db8:d822::1",
        "64:ff9b::5db8:d822",
        "64:ff9b:1::a00:1",
        "2001::1",
        "2001:0:7f00:1::",
        "2001:10::1",
        "2001:db8::1",
        "3fff::1",
        "fec0::1",
        "5f00::1",
        "100::1",
        "4000::1",
        "1fff::1",
        "192.88.99.1",
        "198.18.0.1",
        "203.0.113.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.0.1",
        "172.31.0.1",
    ):
        with subtests.test(address=address):
            assert not is_public_address(address)


def test_the_internet_is_public(subtests):
    for address in ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "2a01:4f8::1", "::ffff:93.184.216.34"):
        with subtests.test(address=address):
            assert is_public_address(address)


def look_up_names_by(monkeypatch, look_up):
    """Let the event loop, whichever it is, look up names by a function instead of the system."""

    async def getaddrinfo(host, *_, **__):
        return look_up(host)

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)


async def test_a_name_that_leads_inside_is_refused_unless_the_operator_allows_it(monkeypatch):
    with webhook_receiver() as got:
        port = int(got.address.rpartition(":")[2].partition("/")[0])
        place = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
        look_up_names_by(monkeypatch, lambda _: [place])
        with pytest.raises(DeliveryFailed, match=r"private network.*EASEL_WEBHOOKS_INSIDE=1"):
            await post_signed_webhook(f"https://hook.example:{port}/", {}, KEY, 1, allow_private=False)
        with pytest.raises(DeliveryFailed, match="only over TLS"):
            await post_signed_webhook(f"http://hook.example:{port}/", {}, KEY, 1, allow_private=False)
        assert got.messages == []
        await post_signed_webhook(f"http://hook.example:{port}/", {}, KEY, 1, allow_private=True)
        assert len(got.messages) == 1


async def test_this_machine_is_no_receiver_however_it_is_named_unless_the_operator_allows_it(subtests):
    for host in ("localhost", "127.0.0.1", "127.8.9.1", "[::1]", "2130706433", "0x7f.1"):
        with subtests.test(host=host), webhook_receiver() as got:
            port = got.address.rpartition(":")[2].partition("/")[0]
            for scheme in ("https", "http"):
                with pytest.raises(DeliveryFailed):
                    await post_signed_webhook(f"{scheme}://{host}:{port}/", {}, KEY, 1, allow_private=False)
            assert got.messages == []


async def test_an_encoded_name_is_looked_up_as_it_is_written(monkeypatch):
    """`xn--strae-oqa` is straße; the older rule by which Python encodes names makes that strasse, another receiver."""
    looked_up = []
    with webhook_receiver() as got:
        port = int(got.address.rpartition(":")[2].partition("/")[0])

        def look_up(host):
            looked_up.append(host)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        look_up_names_by(monkeypatch, look_up)
        await post_signed_webhook(f"http://xn--strae-oqa.example:{port}/", {}, KEY, 1, allow_private=True)
    assert looked_up == ["xn--strae-oqa.example"]


@pytest.mark.parametrize("certified", ["hook.example", "other.example"])
async def test_the_name_is_looked_up_once_and_the_certificate_has_to_be_its_own(monkeypatch, tmp_path, certified):
    """Else a name server could answer the check with one address, and the connection with another."""
    certificate = self_signed(certified, tmp_path / "certificate.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    webhook.system_ssl_context.cache_clear()
    looked_up = []

    def look_up_once(host):
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))] if len(looked_up) == 1 else []

    with webhook_receiver(certificate=certificate) as got:
        look_up_names_by(monkeypatch, look_up_once)
        address = f"https://hook.example:{got.address.rpartition(':')[2]}"
        if certified == "hook.example":
            await post_signed_webhook(address, {}, KEY, 1, allow_private=True)
            assert [headers["Host"] for headers, _ in got.messages] == [address.partition("//")[2].partition("/")[0]]
        else:
            with pytest.raises(DeliveryFailed, match="could not be reached"):
                await post_signed_webhook(address, {}, KEY, 1, allow_private=True)
            assert got.messages == []
    assert looked_up == ["hook.example"]
    webhook.system_ssl_context.cache_clear()


def self_signed(name, path):
    """Write a key and its certificate for a name into a file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    day, now = timedelta(days=1), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(pem))
    return path


async def test_nobody_is_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with pytest.raises(DeliveryFailed, match="could not be reached"):
            await post_signed_webhook(f"http://127.0.0.1:{taken.getsockname()[1]}/", {}, KEY, 1, allow_private=True)


async def test_who_answers_a_byte_at_a_time_is_cut_off(monkeypatch):
    monkeypatch.setattr(webhook, "WEBHOOK_TIMEOUT_SECONDS", 0.3)
    ended = threading.Event()

    def drip(server):
        connection, _ = server.accept()
        with connection:
            while not ended.wait(0.05):
                try:
                    connection.sendall(b"H")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        with pytest.raises(DeliveryFailed):
            await post_signed_webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", {}, KEY, 1, allow_private=True)
        ended.set()
        thread.join()
