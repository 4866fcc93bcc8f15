"""`retinue worker`: runs an agent's turns for a gateway, until it is told to end."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retinue.cli.exits import FAILED, on_hangup, told
from retinue.cli.keeping import store_at
from retinue.cli.target import agents_of

if TYPE_CHECKING:
    from retinue.serve.grpc import Worker


Targets = Annotated[list[str], typer.Argument(metavar="TARGET...", help="Agents: module:agent.")]
Connect = Annotated[str, typer.Option(metavar="HOST:PORT", help="The gateway's gRPC port.")]
Capacity = Annotated[int, typer.Option(help="Turns that it holds at once.", min=1)]
Name = Annotated[
    str | None,
    typer.Option(help="What it is called; by default host and process.", show_default=False),
]
TokenEnv = Annotated[
    str, typer.Option(metavar="VARIABLE", help="The environment variable with its token.")
]
Database = Annotated[
    str | None,
    typer.Option(
        help="Where agents without a memory keep conversations: a SQLite file, or a postgresql://"
        " URL. By default they keep none.",
        show_default=False,
    ),
]
Tls = Annotated[bool, typer.Option("--tls", help="Encrypt, and trust the system's authorities.")]
TlsCa = Annotated[
    Path | None,
    typer.Option(help="Encrypt, and trust the authority in this file.", show_default=False),
]
TlsCert = Annotated[
    Path | None, typer.Option(help="The worker's own certificate.", show_default=False)
]
TlsKey = Annotated[Path | None, typer.Option(help="The key of that.", show_default=False)]
Plaintext = Annotated[
    bool, typer.Option("--plaintext", help="Do not encrypt, though it is another machine.")
]
Grace = Annotated[float, typer.Option(help="Seconds that running turns have at the end.", min=0)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def worker(
    targets: Targets,
    connect: Connect,
    capacity: Capacity = 100,
    name: Name = None,
    token_env: TokenEnv = "RETINUE_WORKER_TOKEN",
    database: Database = None,
    tls: Tls = False,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    plaintext: Plaintext = False,
    grace: Grace = 30.0,
    debug: Debug = False,
) -> None:
    """Run turns of agents for a gateway: a `retinue serve` elsewhere.

    The worker dials out and needs no port. It has its own keys of providers and its own way to the
    database. SIGTERM or Ctrl-C lets running turns end; a second one cancels them, a third one
    ends the process.
    """
    with told(debug):
        from retinue.serve.grpc import ClientTLS, Worker

        agents = agents_of(targets)
        encrypted = tls or tls_ca or tls_cert or tls_key
        trust = ClientTLS(ca=tls_ca, cert=tls_cert, key=tls_key) if encrypted else None
        logging.basicConfig(level=logging.WARNING, format="retinue: %(message)s", stream=sys.stderr)

        async def work() -> None:
            store = store_at(database)
            worker = Worker(
                agents,
                connect,
                token=os.environ.get(token_env) or None,
                tls=trust,
                plaintext=plaintext,
                capacity=capacity,
                name=name,
                store=store,
            )
            if store is not None:
                await store.conversations(limit=1)  # one that cannot be read is told of now
            await _until_told(worker, grace)

        asyncio.run(work())


async def _until_told(worker: "Worker", grace: float) -> None:
    ending, again = asyncio.Event(), asyncio.Event()

    def hear() -> None:
        if again.is_set():
            os._exit(FAILED)  # a tool that will not be cancelled would hold it for ever
        (again if ending.is_set() else ending).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C ends it at once
            loop.add_signal_handler(number, hear)
    on_hangup(lambda number, frame: loop.call_soon_threadsafe(hear))
    running = asyncio.create_task(worker.run())
    saying = asyncio.create_task(_say_attached(worker))
    try:
        await _first(running, ending.wait())
        if not running.done():
            with contextlib.suppress(OSError):  # the terminal may be gone
                print(f"Worker {worker.name} takes no more turns and ends.", flush=True)
            await _first(asyncio.create_task(worker.leave(grace)), again.wait())
            await _first(running, again.wait())
        if running.done():
            await running
    finally:
        saying.cancel()
        await worker.close()
        running.cancel()
        await asyncio.gather(running, saying, return_exceptions=True)


async def _first(task: asyncio.Task[None], other: Coroutine[Any, Any, object]) -> None:
    """Waits for either; an error of the task is raised."""
    second = asyncio.create_task(other)
    try:
        await asyncio.wait({task, second}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        second.cancel()


async def _say_attached(worker: "Worker") -> None:
    await worker.attached.wait()
    print(f"Worker {worker.name} is attached to {worker.address}.", flush=True)
