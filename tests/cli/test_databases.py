"""Conversations on a server: the command line takes its URL where it takes a file."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
import redis

from retinue.cli.answers import resume_command
from tests.cli.conftest import Agents, Cli

TALK = 'agent = Agent(Scripted("Hello.", repeat=True))'


@pytest.fixture
def in_postgres(server: str) -> Iterator[str]:
    """A URL whose tables are in a schema of their own."""
    schema = f"t{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        yield f"{server}?options=-csearch_path%3D{schema}"
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


@pytest.fixture
def in_redis(redis_server: str) -> Iterator[str]:
    """A URL of a database that no other test uses, empty before and after."""
    url = f"{redis_server.removesuffix('/0')}/9"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
        yield url
        client.flushdb()


def goes_round(cli: Cli, agents: Agents, url: str) -> None:
    """A conversation is held, listed, shown and removed."""
    given = ("--database", url)
    target = f"{agents(TALK)}:agent"
    assert cli("run", "Hi", "--agent", target, "--conversation", "c", *given).stdout == "Hello.\n"
    assert "Hi" in cli("conversations", "list", *given).stdout
    assert "Hello." in cli("conversations", "show", "c", *given).stdout
    assert cli("conversations", "rm", "c", "--yes", *given).exit_code == 0
    assert cli("conversations", "list", *given).stdout == ""


def test_conversations_are_kept_in_postgresql(cli: Cli, agents: Agents, in_postgres: str) -> None:
    goes_round(cli, agents, in_postgres)


def test_conversations_are_kept_in_redis(cli: Cli, agents: Agents, in_redis: str) -> None:
    goes_round(cli, agents, in_redis)


def test_the_variable_may_name_a_server(
    cli: Cli, agents: Agents, in_redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETINUE_DATABASE", in_redis)
    cli("run", "Hi", "--agent", f"{agents(TALK)}:agent", "--conversation", "c")
    assert "Hi" in cli("conversations", "list").stdout


@pytest.mark.rule("R-FAIL-3")
def test_a_server_that_is_not_there_is_one_sentence_without_its_password(cli: Cli) -> None:
    result = cli("conversations", "list", "--database", "redis://ann:s3cret@127.0.0.1:1/0")
    assert result.exit_code == 1
    assert "Redis database 0 at 127.0.0.1:1 cannot be reached" in result.stderr
    assert "s3cret" not in result.stderr + result.stdout


def test_an_empty_name_of_a_database_does_not_stand_for_the_users_own(
    cli: Cli, agents: Agents
) -> None:
    cli("run", "Hi", "--agent", f"{agents(TALK)}:agent", "--conversation", "c")
    removing = cli("conversations", "rollback", "c", "--to", "0", "--yes", "--database", "")
    assert removing.exit_code == 2
    assert "--database is empty" in removing.stderr
    assert "Hi" in cli("conversations", "list").stdout


@pytest.mark.parametrize("url", ["mysql://ann:s3cret@db/chats", "sqlite:///chats.db"])
def test_a_url_that_is_none_of_a_store_is_refused(cli: Cli, url: str) -> None:
    result = cli("conversations", "list", "--database", url)
    assert result.exit_code == 2
    assert "give postgresql://…, redis://…" in result.stderr
    assert "s3cret" not in result.stderr


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://ann:s3cret@db:1/2", "redis://USER:PASSWORD@db:1/2"),
        (
            "postgresql://ann@db/chats?sslmode=require&password=s3cret",
            "'postgresql://USER:PASSWORD@db/chats?sslmode=require&password=PASSWORD'",
        ),
        (
            "postgresql:///chats?ssl%70assword=s3cret",
            "'postgresql:///chats?ssl%70assword=PASSWORD'",
        ),
        ("odd?password=none.db", "'odd?password=none.db'"),
    ],
)
def test_the_command_that_goes_on_does_not_repeat_a_password(url: str, shown: str) -> None:
    command = resume_command("c", target=None, model=None, database=url, owner=None)
    assert command == f"retinue resume c --database {shown}"
