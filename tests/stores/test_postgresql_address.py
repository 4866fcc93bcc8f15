"""The URL of a PostgreSQL database: what it means, and what is refused before any work."""

from typing import Any

import pytest

from retinue.errors import ConfigError
from retinue.stores import PostgreSQL


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGUSER", "ann")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://u:s3cret@db.example.org:6543/chats", "chats at db.example.org:6543"),
        (
            "postgres://u:s3cret@db.example.org/chats?sslmode=require",
            "chats at db.example.org:5432",
        ),
        ("postgresql://u:s3cret%40%2F@[::1]:5/chats", "chats at [::1]:5"),
        ("postgresql://u:s3cret@one,two:6543/chats", "chats at one:5432,two:6543"),
        ("postgresql://one:1,two:2/chats", "chats at one:1,two:2"),
        ("postgresql:///chats?host=/run/pg&password=s3cret", "chats at /run/pg:5432"),
        ("postgresql://", "ann at the local socket:5432"),
    ],
)
def test_a_store_says_where_it_is_and_never_the_password(url: str, place: str) -> None:
    shown = repr(PostgreSQL(url))
    assert shown == f"<PostgreSQL database {place}>"
    assert "s3cret" not in shown


def test_what_the_url_leaves_out_comes_from_where_psql_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGHOST", "db.example.org")
    monkeypatch.setenv("PGDATABASE", "chats")
    assert "chats at db.example.org:5432, schema x" in repr(PostgreSQL("postgresql://", schema="x"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "chats",
        "host=db dbname=chats password=s3cret",
        "mysql://u:s3cret@db/chats",
        "postgresql+psycopg://u:s3cret@db/chats",
        "postgresql://u:s3@cret@db/chats",
        "postgresql://u:s3/cret@db/chats",
        "postgresql://u:s3?cret@db/chats",
        "postgresql://u:s3%cret@db/chats",
        "postgresql://db:s3cret/chats",
        "postgresql://u:s3cret@db/chats?nonsense=1",
        "postgresql://u:s3cret@db/cha\x00ts",
        "s3cret://db/chats",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match=r"URL of the PostgreSQL .*postgresql://USER") as caught:
        PostgreSQL(url)
    if not url.startswith("s3cret"):
        assert "s3" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"schema": ""}, "name of a schema"),
        ({"schema": "ä" * 32}, "name of a schema"),
        ({"schema": "a\x00b"}, "name of a schema"),
        ({"pool": 0}, "pool=0"),
        ({"pool": 10_000}, "pool=10000"),
        ({"pool": 4.0}, "pool=4.0"),
        ({"pool": "4"}, "pool='4'"),
        ({"timeout": "30"}, "timeout='30'"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": float("nan")}, "timeout=nan"),
        ({"timeout": float("inf")}, "timeout=inf"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        PostgreSQL("postgresql://db/chats", **options)


def test_a_url_that_is_no_text_is_refused() -> None:
    url: Any = b"postgresql://db/chats"
    with pytest.raises(ConfigError, match="a text, not bytes"):
        PostgreSQL(url)
