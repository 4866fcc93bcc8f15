"""Listening: TLS, clients that must have a certificate too, and ports that are taken."""

import asyncio
import datetime
import ssl
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import retinue.serve
from retinue import ConfigError
from retinue.serve.http.server import Server
from tests.serve.scenes import echoing, within
from tests.serve.serving import serving


def certificate(
    folder: Path,
    name: str,
    locked: serialization.KeySerializationEncryption = serialization.NoEncryption(),  # noqa: B008
) -> tuple[Path, Path]:
    """A certificate that has signed itself, and its key, as files in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert, secret = folder / f"{name}.pem", folder / f"{name}.key"
    cert.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, locked))
    return cert, secret


async def test_a_client_without_a_certificate_is_not_let_in_where_one_is_asked_for(
    tmp_path: Path,
) -> None:
    cert, key = certificate(tmp_path, "server")
    mine, my_key = certificate(tmp_path, "client")
    app = retinue.serve.app(echoing())
    ready = asyncio.Event()
    server = Server(
        app,
        app.state.gateway,
        port=0,
        certificate=cert,
        key=key,
        clients=mine,
        on_ready=lambda _: ready.set(),
        grace=0.1,
    )
    running = asyncio.create_task(server.serve())
    await within(ready.wait())
    assert server.address.startswith("https://")
    url = f"https://localhost:{server.address.rpartition(':')[2]}/healthz"
    stranger = ssl.create_default_context(cafile=str(cert))
    known = ssl.create_default_context(cafile=str(cert))
    known.load_cert_chain(mine, my_key)
    try:
        async with aiohttp.ClientSession() as client:
            async with client.get(url, ssl=known) as response:
                assert response.status == 200
            with pytest.raises(aiohttp.ClientError):
                await client.get(url, ssl=stranger)
    finally:
        server.drain()
        await within(running)


async def test_a_certificate_that_cannot_be_used_is_refused_before_anything_listens(
    tmp_path: Path,
) -> None:
    app = retinue.serve.app(echoing())
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    cert, key = certificate(tmp_path, "server")
    _, other = certificate(tmp_path, "other")
    locked = certificate(tmp_path, "locked", serialization.BestAvailableEncryption(b"secret"))
    for wrong, why in (
        ((junk, junk), "are no pair in PEM"),
        ((cert, other), "are no pair in PEM"),
        (locked, "or the key has a passphrase"),  # nobody is asked for it at the terminal
        ((tmp_path / "nowhere", key), "nowhere' cannot be read"),
    ):
        with pytest.raises(ConfigError, match=why):
            Server(app, app.state.gateway, certificate=wrong[0], key=wrong[1])


async def test_a_port_that_is_taken_is_told_as_such() -> None:
    async with serving(echoing()) as here:
        app = retinue.serve.app(echoing())
        server = Server(app, app.state.gateway, port=int(here.url[17:]))
        with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1, port \d+"):
            await server.serve()
