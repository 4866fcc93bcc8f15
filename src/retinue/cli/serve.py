"""`retinue serve`: agents over HTTP and gRPC, and `retinue key`: who may use them."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Struct
from msgspec.structs import asdict

from retinue.agent import Agent
from retinue.cli.exits import told
from retinue.cli.keeping import opened, store_at
from retinue.cli.listening import Where, hosts_of, listen
from retinue.cli.target import agents_of
from retinue.errors import ConfigError, MissingExtraError
from retinue.stores import Store

if TYPE_CHECKING:
    from retinue.serve import Access, Bounds, Gateway
    from retinue.serve.grpc import Grpc
    from retinue.serve.grpc.fleet import Fleet

_RouteName = Literal["least-loaded", "round-robin", "random", "consistent-hash"]
_LossName = Literal["continue", "fail"]

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TARGET]...",
        help="Agents as module:agent, or models as provider:model. By default the embedded model.",
        show_default=False,
    ),
]
Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(help="The port of HTTP; 0 takes a free one.", min=0, max=65535)]
GrpcPort = Annotated[
    int | None,
    typer.Option(help="The port of gRPC; by default there is none.", min=0, max=65535),
]
Workers = Annotated[
    bool,
    typer.Option("--workers", help="Run the turns on workers, which attach to the port of gRPC."),
]
Route = Annotated[
    _RouteName | None,
    typer.Option(
        help="How a worker is chosen; consistent-hash keeps a conversation on its worker. By"
        " default least-loaded.",
        show_default=False,
    ),
]
Queue = Annotated[
    int | None,
    typer.Option(
        help="Turns that may wait for a place on a worker; by default 1000.",
        min=0,
        show_default=False,
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        help="Seconds that one may wait for it; by default 30.", min=0.001, show_default=False
    ),
]
OnLoss = Annotated[
    _LossName | None,
    typer.Option(
        help="What becomes of a turn whose worker is lost: another one goes on with it, or it ends"
        " as failed. By default continue.",
        show_default=False,
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        help="Where agents without a memory keep conversations: a SQLite file, or a postgresql://"
        " URL. By default as `retinue chat` does.",
        show_default=False,
    ),
]
NoMemory = Annotated[bool, typer.Option("--no-memory", help="Keep no conversations.")]
ApiKeysFile = Annotated[
    Path | None,
    typer.Option(help="A file of API keys, as `retinue key` writes it.", show_default=False),
]
JwtKey = Annotated[
    Path | None,
    typer.Option(
        help="A file with the secret or public key that tokens are signed with.",
        show_default=False,
    ),
]
JwtAlgorithm = Annotated[str, typer.Option(help="How tokens are signed.")]
JwtIssuer = Annotated[
    str | None, typer.Option(help="Who must have issued tokens.", show_default=False)
]
JwtAudience = Annotated[
    str | None, typer.Option(help="Whom tokens must be for.", show_default=False)
]
Without = Annotated[
    bool,
    typer.Option(
        "--without-authentication",
        help="Let everybody in who can reach the port, though it is not on the loopback interface.",
    ),
]
TlsCert = Annotated[Path | None, typer.Option(help="The certificate.", show_default=False)]
TlsKey = Annotated[Path | None, typer.Option(help="The key of that.", show_default=False)]
TlsClientCa = Annotated[
    Path | None,
    typer.Option(help="Let in only clients with a certificate of this.", show_default=False),
]
Origin = Annotated[
    list[str] | None,
    typer.Option(help="An origin whose pages may use the server.", show_default=False),
]
TurnSeconds = Annotated[float, typer.Option(help="Seconds that a turn may take.", min=0.001)]
BodyBytes = Annotated[int, typer.Option(help="Bytes that a request's body may have.", min=1)]
Rate = Annotated[
    float | None,
    typer.Option(help="Requests a second of one owner; by default any.", show_default=False),
]
NoConsole = Annotated[bool, typer.Option("--no-console", help="Show no console at /.")]
Capacity = Annotated[int, typer.Option(help="Turns that run at once in this process.", min=1)]
Grace = Annotated[float, typer.Option(help="Seconds that running turns have at the end.", min=0)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def serve(
    targets: Targets = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    grpc_port: GrpcPort = None,
    workers: Workers = False,
    route: Route = None,
    queue: Queue = None,
    patience: Patience = None,
    on_loss: OnLoss = None,
    database: Database = None,
    no_memory: NoMemory = False,
    api_keys: ApiKeysFile = None,
    jwt_key: JwtKey = None,
    jwt_algorithm: JwtAlgorithm = "HS256",
    jwt_issuer: JwtIssuer = None,
    jwt_audience: JwtAudience = None,
    without_authentication: Without = False,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_client_ca: TlsClientCa = None,
    origin: Origin = None,
    turn_seconds: TurnSeconds = 600.0,
    body_bytes: BodyBytes = 1_000_000,
    rate: Rate = None,
    capacity: Capacity = 1_000,
    grace: Grace = 30.0,
    no_console: NoConsole = False,
    debug: Debug = False,
) -> None:
    """Serve agents over HTTP, and over gRPC where a port is given.

    Without keys or tokens it listens on the loopback interface only. SIGTERM or Ctrl-C lets
    running turns end; a second one cancels them, a third one ends the process.
    """
    with told(debug):
        logging.basicConfig(level=logging.WARNING, format="retinue: %(message)s", stream=sys.stderr)
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would tell errors once more
        access = _access(api_keys, jwt_key, jwt_algorithm, jwt_issuer, jwt_audience)
        where = Where(host.strip("[]"), port, grpc_port, tls_cert, tls_key, tls_client_ca, grace)
        hosts = hosts_of(where, access, open_to_all=without_authentication)
        placing = _Placing(route, queue, patience, on_loss)
        _check_workers(workers, grpc_port, targets, placing)
        store = _store(database, no_memory=no_memory, workers=workers)
        agents = {} if workers else agents_of(targets or [None])
        from retinue.serve.bounds import Bounds
        from retinue.serve.declared import app_of

        bounds = Bounds(turn_seconds=turn_seconds, body_bytes=body_bytes, rate=rate)
        gateway, fleet = _gateway(agents, store, capacity, access, bounds, placing)
        app = app_of(gateway, origins=origin or (), hosts=hosts, console=not no_console)
        asyncio.run(listen(app, gateway, fleet, where))


def key(
    owner: Annotated[str, typer.Argument(help="Whose key it is.")],
    file: Annotated[Path, typer.Option(help="The file of keys that it is added to.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="What it may do: turns, conversations, metrics, work; by default the first two.",
            show_default=False,
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Make an API key and print it, once. The file keeps a hash of it."""
    with told(debug):
        from retinue.serve.access import add_key, new_key

        secret, kept = new_key(owner, scope or ("conversations", "turns"))
        add_key(file, kept)
        print(secret, flush=True)


class _Placing(Struct, frozen=True):
    """How turns get to their workers, as far as it is said."""

    route: _RouteName | None = None
    queue: int | None = None
    patience: float | None = None
    on_loss: _LossName | None = None

    def dispatcher(self) -> "Grpc":
        """The dispatcher that does it."""
        from retinue.serve.grpc import Grpc

        said = {name: value for name, value in asdict(self).items() if value is not None}
        if self.route is not None:
            said["route"] = self.route.replace("-", "_")
        return Grpc(**said)


def _gateway(
    agents: dict[str, Agent],
    store: Store | None,
    capacity: int,
    access: "Access | None",
    bounds: "Bounds",
    placing: _Placing,
) -> "tuple[Gateway, Fleet | None]":
    from retinue.serve.declared import gateway_of
    from retinue.serve.gateway import Gateway

    if agents:
        made = gateway_of(agents, store=store, capacity=capacity, access=access, bounds=bounds)
        return made, None
    dispatcher = placing.dispatcher()
    stores = () if store is None else (store,)
    return Gateway(dispatcher, access=access, stores=stores, bounds=bounds), dispatcher.fleet


def _access(
    keys: Path | None,
    jwt_key: Path | None,
    algorithm: str,
    issuer: str | None,
    audience: str | None,
) -> "Access | None":
    from retinue.serve.access import Access, AnyOf, ApiKeys
    from retinue.serve.tokens import Tokens

    if jwt_key is None and (issuer is not None or audience is not None):
        raise ConfigError("--jwt-issuer and --jwt-audience check tokens; give --jwt-key too.")
    found: list[Access] = []
    if keys is not None:
        found.append(ApiKeys(keys))
    if jwt_key is not None:
        try:
            secret = jwt_key.read_bytes().rstrip(b"\r\n")
        except OSError as error:
            raise ConfigError(
                f"The key of tokens cannot be read from {jwt_key}: {error.strerror or error}."
            ) from error
        found.append(Tokens(secret, algorithms=(algorithm,), issuer=issuer, audience=audience))
    if len(found) < 2:
        return found[0] if found else None
    return AnyOf(found)


def _check_workers(
    workers: bool, grpc_port: int | None, targets: Sequence[str] | None, placing: _Placing
) -> None:
    if workers and (grpc_port is None or targets):
        raise ConfigError(
            "--workers runs the agents of workers, which attach to --grpc-port; give that, and no"
            " TARGET."
        )
    if not workers and placing != _Placing():
        raise ConfigError(
            "--route, --queue, --patience and --on-loss say how workers get turns; give --workers"
            " too, or leave them out."
        )


def _store(database: str | None, *, no_memory: bool, workers: bool) -> Store | None:
    if no_memory:
        if database is not None:
            raise ConfigError("--no-memory keeps nothing, so --database has no use; drop one.")
        return None
    if database is not None or workers:
        return store_at(database)
    try:
        return opened(None)
    except MissingExtraError as error:
        raise MissingExtraError(f"{error} Or serve with --no-memory.") from error
