"""Keys, tokens and rates without a wire: files that hold no keys, several doors, full buckets."""

import base64
import hmac
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from retinue import ConfigError
from retinue.serve.access import (
    SCOPES,
    USUAL,
    AnyOf,
    Anyone,
    ApiKey,
    ApiKeys,
    Caller,
    add_key,
    hashed,
    is_loopback,
    new_key,
)
from retinue.serve.bounds import Bounds, Rates
from retinue.serve.faults import Refused
from retinue.serve.tokens import Tokens


def test_anyone_is_one_and_the_same_and_may_do_everything() -> None:
    assert Anyone().caller(None) == Anyone().caller("x") == Caller(None, frozenset(SCOPES))


def test_a_key_is_known_by_its_hash_alone() -> None:
    secret, kept = new_key("ann", ("metrics", "turns"))
    assert secret not in repr(kept)
    assert ApiKeys([kept]).caller(secret) == Caller("ann", frozenset({"metrics", "turns"}))
    assert ApiKeys([ApiKey("bob", hashed("mine"))]).caller("mine") == Caller("bob", USUAL)
    for wrong in (None, "", secret + " ", secret[:-1], kept.sha256, "\ud800"):
        with pytest.raises(Refused, match="Who you are is not known"):
            ApiKeys([kept]).caller(wrong)


UPPER = f'{{"owner":"ann","sha256":"{hashed("s").upper()}"}}'
"""A line by which nobody could come in, since hashes are compared as they are written."""


def test_a_file_may_hold_remarks_and_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f'# of the front end\n\n{{"owner":"ann","sha256":"{hashed("s")}"}}\n')
    assert ApiKeys(file).caller("s").owner == "ann"
    for line in (
        "rk-secret",
        '{"owner":"ann"}',
        '{"owner":"a","sha256":"b","scopes":["all"]}',
        UPPER,
    ):
        file.write_text(f"# one\n{line}\n")
        with pytest.raises(ConfigError, match=r"Line 2 of .* holds no key") as refused:
            ApiKeys(file)
        assert "rk-secret" not in str(refused.value)


def test_a_broken_change_of_the_file_leaves_the_keys_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("retinue.serve.access._LOOK_EVERY", 0.0)
    file = tmp_path / "keys"
    file.write_text(f'{{"owner":"ann","sha256":"{hashed("s")}"}}\n')
    access = ApiKeys(file)
    file.write_text("half a li")
    assert access.caller("s").owner == "ann"
    assert "The API keys stay as they were" in caplog.text


def test_one_of_several_doors_is_enough() -> None:
    secret, kept = new_key("ann")
    access = AnyOf([ApiKeys([kept]), Tokens("x" * 32)])
    assert access.caller(secret).owner == "ann"
    for wrong in (None, "x", "a.b.c"):
        with pytest.raises(Refused):
            access.caller(wrong)


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("[::1]", True),
        ("a.localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_the_loopback_interface_is_known_by_its_names(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_a_bucket_fills_again_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("retinue.serve.bounds.time.monotonic", lambda: now)
    rates = Rates(rate=2, burst=3)
    for _ in range(3):
        rates.take("ann")
    with pytest.raises(Refused) as refused:
        rates.take("ann")
    assert refused.value.retry_after == pytest.approx(0.5)
    rates.take("bob")
    now = 0.5
    rates.take("ann")
    with pytest.raises(Refused):
        rates.take("ann")
    now = 100.0
    for _ in range(3):
        rates.take("ann")
    with pytest.raises(Refused):
        rates.take("ann")


@pytest.mark.parametrize(
    ("own", "asked", "counts"), [(600.0, None, 600), (600.0, 5, 5), (5.0, 600, 5), (None, 7, 7)]
)
def test_a_client_may_ask_for_less_time_and_not_for_more(
    own: float | None, asked: float | None, counts: float
) -> None:
    assert Bounds(turn_seconds=own).seconds(asked) == counts


def test_a_key_stands_on_a_line_of_its_own_whatever_the_file_ends_in(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    for before in ("", "# a remark", "# a remark\n", f'{{"owner":"bob","sha256":"{hashed("b")}"}}'):
        file.write_text(before)
        secret, kept = new_key("ann")
        add_key(file, kept)
        assert ApiKeys(file).caller(secret).owner == "ann", before


def test_a_broken_file_is_told_once_and_not_at_each_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("retinue.serve.access._LOOK_EVERY", 0.0)
    file = tmp_path / "keys"
    file.write_text(f'{{"owner":"ann","sha256":"{hashed("s")}"}}\n')
    access = ApiKeys(file)
    file.write_text("half a li")
    for _ in range(3):
        access.caller("s")
    assert len(caplog.records) == 1
    file.unlink()
    for _ in range(3):
        access.caller("s")
    assert len(caplog.records) == 2


def pem(private: bool = False) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    if private:
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("key", "algorithms", "complaint"),
    [
        (pem(), ("HS256",), "none for HS256: that takes a secret"),
        ("x" * 64, ("ES256",), "none for ES256: that takes a public key"),
        (pem(), ("RS256",), "none for RS256"),
        (pem(), ("ES256", "RS256"), "none for RS256"),
        (pem(private=True), ("ES256",), "give the public key"),
        (pem(), ("ES257",), "cannot be signed with 'ES257'"),
        ("x" * 63, ("HS256", "HS512"), "give 64 or more for HS512"),
    ],
)
def test_a_key_that_no_token_could_be_checked_by_is_refused_at_once(
    key: str | bytes, algorithms: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Tokens(key, algorithms=algorithms)


def test_a_public_key_checks_what_its_private_key_has_signed() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    access = Tokens(public, algorithms=("ES256",))
    said = {"sub": "ann", "exp": time.time() + 60}
    assert access.caller(jwt.encode(said, key, algorithm="ES256")).owner == "ann"
    head, body, _ = jwt.encode(said, "x" * 32, algorithm="HS256").split(".")
    mac = hmac.digest(public, f"{head}.{body}".encode(), "sha256")
    forged = f"{head}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    with pytest.raises(Refused, match="not valid"):
        access.caller(forged)


@pytest.mark.parametrize("owner", ["", " ", "a\nb", "\ud800", "x" * 256, 7, None, ["ann"]])
def test_an_owner_whom_no_store_could_keep_is_none(owner: Any) -> None:
    said = {"who": owner, "exp": time.time() + 60}
    token = jwt.encode(said, "x" * 32, algorithm="HS256")
    with pytest.raises(Refused, match="Who you are is not known"):
        Tokens("x" * 32, owner="who").caller(token)
