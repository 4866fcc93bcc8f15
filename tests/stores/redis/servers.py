"""Redis servers for one test each, and one that refuses everything."""

import asyncio
import contextlib
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import redis

PATIENCE: Final = 20.0
"""Seconds after which a server that should be there is a failure."""


class OwnServer:
    """A server on the loopback interface, with its files in a folder. It runs within `with`.

    Attributes:
        port: where it listens.
        url: for the user who may do everything.
    """

    def __init__(self, folder: Path, settings: Sequence[str] = ()) -> None:
        self._settings = ["bind 127.0.0.1", f'dir "{folder}"', 'save ""', *settings]
        self._process: subprocess.Popen[str] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts it where it was, and waits until it answers."""
        settings = "\n".join([f"port {self.port}", *self._settings])
        self._process = subprocess.Popen(
            ["redis-server", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        assert self._process.stdin is not None
        self._process.stdin.write(settings)
        self._process.stdin.close()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.does("PING")
                return
            except redis.ConnectionError:  # not there, or reading its data
                assert time.monotonic() < deadline
                assert self._process.poll() is None, settings
                time.sleep(0.01)

    def stop(self) -> None:
        """Ends it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def does(self, *command: str) -> Any:
        """What it answers to a command."""
        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            return client.execute_command(*command)

    def __enter__(self) -> "OwnServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.asynccontextmanager
async def refusing(message: str) -> AsyncIterator[str]:
    """The URL of a server that answers every command but those of the connection with an error."""

    serving: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(refuse(reader, writer)))

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                count = int((await reader.readuntil(b"\r\n"))[1:])
                words: list[bytes] = []
                for _ in range(count):
                    size = int((await reader.readuntil(b"\r\n"))[1:])
                    words.append((await reader.readexactly(size + 2))[:-2])
                polite = words[0] in (b"AUTH", b"CLIENT", b"SELECT")
                writer.write(b"+OK\r\n" if polite else f"-{message}\r\n".encode())
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"redis://ann:s3cret@127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    if serving:
        await asyncio.wait(serving)
