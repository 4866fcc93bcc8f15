"""A way to a server that the test can cut, and a server that lets nobody in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes between its clients and a server. `url` leads through it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._server = (parts.hostname, parts.port)
        self._parts = parts
        self._ends: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._answering = asyncio.Event()
        self._answering.set()
        self.answered = asyncio.Event()
        """Set when the server has answered, also while the client is kept from hearing it."""
        self.url = ""

    def listen_at(self, port: int) -> None:
        """Sets the URL."""
        user, _, _ = self._parts.netloc.rpartition("@")
        self.url = self._parts._replace(netloc=f"{user}@127.0.0.1:{port}").geturl()

    def cut(self) -> None:
        """Breaks all connections, as a firewall does."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    def hold_answers(self) -> None:
        """Keeps the answers of the server, until `let_go`."""
        self.answered.clear()
        self._answering.clear()

    def let_go(self) -> None:
        """Passes them on."""
        self._answering.set()

    async def close(self) -> None:
        """Breaks all connections, and waits until nothing of them is left."""
        self.let_go()
        self.cut()
        if self._serving:
            await asyncio.wait(self._serving)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes a client in."""
        self._serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(*self._server)
        self._ends.update((writer, there[1]))
        await asyncio.gather(self._ask(reader, there[1]), self._answer(there[0], writer))

    async def _ask(self, client: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await client.read(65_536):
                server.write(data)
                await server.drain()
        await _close(server)

    async def _answer(self, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await server.read(65_536):
                self.answered.set()
                await self._answering.wait()
                client.write(data)
                await client.drain()
        await _close(client)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def proxy(url: str) -> AsyncIterator[Proxy]:
    """A proxy before the server of the URL."""
    between = Proxy(url)
    server = await asyncio.start_server(between.accept, "127.0.0.1", 0)
    between.listen_at(server.sockets[0].getsockname()[1])
    async with server:
        yield between
        await between.close()


@contextlib.asynccontextmanager
async def refusing(code: str, message: str) -> AsyncIterator[str]:
    """The URL of a PostgreSQL server that answers every login with this error."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            request = await reader.readexactly(size - 4)
            if request[:4] in (b"\x04\xd2\x16\x2f", b"\x04\xd2\x16\x30"):
                writer.write(b"N")  # neither TLS nor GSSAPI
                continue
            break
        fields = {"S": "FATAL", "V": "FATAL", "C": code, "M": message}
        body = b"".join(f"{key}{text}\0".encode() for key, text in fields.items()) + b"\0"
        writer.write(b"E" + (len(body) + 4).to_bytes(4, "big") + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        yield f"postgresql://ann:s3cret@127.0.0.1:{server.sockets[0].getsockname()[1]}/chats"
