"""Addresses and certificates: what cannot be is refused before anything is opened."""

from pathlib import Path

import pytest

from retinue import Agent, ConfigError
from retinue.models.scripted import Scripted
from retinue.serve.gateway import Gateway
from retinue.serve.grpc import ClientTLS, Grpc, GrpcServer, ServerTLS, Worker


def agent() -> Agent:
    return Agent(Scripted("x"), name="a")


@pytest.mark.parametrize(
    "address", ["gateway", ":50051", "host:", "host:0x1", "host:70000", "host:0", "::1:50051", ""]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="is no address; give host:port"):
        Worker(agent(), address)


def test_a_plain_connection_to_another_machine_is_refused_unless_said() -> None:
    with pytest.raises(ConfigError, match=r"'10\.0\.0\.1:50051' is another machine.*--plaintext"):
        Worker(agent(), "10.0.0.1:50051")
    Worker(agent(), "10.0.0.1:50051", plaintext=True)
    Worker(agent(), "[::1]:50051")
    Worker(agent(), "localhost:50051")


async def test_files_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.pem' cannot be read: No such file"):
        Worker(agent(), "127.0.0.1:1", tls=ClientTLS(ca=tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match="needs its key"):
        Worker(agent(), "127.0.0.1:1", tls=ClientTLS(cert=tmp_path / "ca.pem"))
    tls = ServerTLS(cert=tmp_path / "none.pem", key=tmp_path / "gateway.key")
    with pytest.raises(ConfigError, match="cannot be read"):
        GrpcServer(Gateway(Grpc()), tls=tls)


@pytest.mark.parametrize("token", ["", " \n", "a\nb", "käse"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(ConfigError, match="The worker's token is none") as error:
        Worker(agent(), "127.0.0.1:9", token=token)
    assert not token.strip() or token not in str(error.value)


def test_files_that_hold_something_else_are_refused_before_anything_is_opened(
    tmp_path: Path,
) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    with pytest.raises(ConfigError, match=r"junk\.pem' and .*junk\.pem' are no pair in PEM"):
        GrpcServer(Gateway(Grpc()), tls=ServerTLS(cert=junk, key=junk))
    with pytest.raises(ConfigError, match=r"junk\.pem' holds no certificate in PEM"):
        Worker(agent(), "127.0.0.1:1", tls=ClientTLS(ca=junk))


@pytest.mark.parametrize("heartbeat", [0, -1.0, float("nan")])
def test_a_heartbeat_that_is_none_is_refused(heartbeat: float) -> None:
    with pytest.raises(ConfigError, match="heartbeat="):
        GrpcServer(Gateway(Grpc()), heartbeat=heartbeat)
