"""The URL of a Redis server: what it means, and what is refused before any work."""

from typing import Any

import pytest

from retinue.errors import ConfigError
from retinue.stores import Redis
from retinue.stores.redis.address import parse


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://u:s3cret@db.example.org:6380/3", "database 3 at db.example.org:6380"),
        ("rediss://:s3cret@db.example.org", "database 0 at db.example.org:6379"),
        ("redis://u:s3cret%40%2F@[::1]:5/1", "database 1 at [::1]:5"),
        ("redis://db?db=2", "database 2 at db:6379"),
        ("redis://", "database 0 at localhost:6379"),
        ("redis://:s3:cret@db/", "database 0 at db:6379"),
        ("unix:///run/redis.sock", "database 0 at /run/redis.sock"),
        ("unix://u:s3cret@/run/my%20redis.sock?db=4", "database 4 at /run/my redis.sock"),
    ],
)
def test_a_store_says_where_it_is_and_never_the_password(url: str, place: str) -> None:
    shown = repr(Redis(url))
    assert shown == f"<Redis {place}>"
    assert "cret" not in shown + repr(parse(url))


def test_a_user_a_password_and_the_settings_of_tls_are_taken_from_the_url() -> None:
    address = parse(
        "rediss://a%3An:p%40ss%25@db?ssl_ca_certs=/ca.pem&ssl_cert_reqs=none&ssl_check_hostname=false"
    )
    assert address.login == {"username": "a:n", "password": "p@ss%"}
    assert address.where == {
        "host": "db",
        "port": 6379,
        "ssl_ca_certs": "/ca.pem",
        "ssl_cert_reqs": "none",
        "ssl_check_hostname": False,
    }
    assert parse("redis://:pass@db").login == {"password": "pass"}
    assert parse("redis://db").login == {}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "db:6379",
        "http://u:s3cret@db",
        "redis+sentinel://u:s3cret@db",
        "redis://u:s3@cret@db",
        "redis://u:s3/cret@db",
        "redis://u:s3?cret@db",
        "redis://u?cret@db",
        "redis://u:s3#cret@db",
        "redis://db:s3cret/0",
        "redis://db:65536/0",
        "redis://db/chats",
        "redis://db/0?s3cret=1",
        "redis://db/0?db=s3",
        "redis://db/1?db=2",
        "redis://db?ssl_cert_reqs=none",
        "rediss://db?ssl_cert_reqs=maybe",
        "rediss://db?ssl_ca_certs=",
        "redis://db?socket_timeout=1",
        "redis://d\x00b",
        "redis://one,two",
        "unix://run/redis.sock",
        "unix://",
        "s3cret://db",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match=r"URL of the Redis server") as caught:
        Redis(url)
    if not url.startswith("s3cret"):
        assert "s3" not in str(caught.value)
        assert "cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_url_that_is_no_text_is_refused() -> None:
    url: Any = b"redis://db"
    with pytest.raises(ConfigError, match="a text, not bytes"):
        Redis(url)
