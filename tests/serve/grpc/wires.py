"""A wire between two ends that can be cut: with a word, or without one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Wire:
    """Passes bytes on to a port of this machine, both ways.

    Attributes:
        port: where it is dialled.
    """

    def __init__(self, to: int) -> None:
        self.port = 0
        self._to = to
        self._whole = asyncio.Event()
        self._whole.set()
        self._passing: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """Where it is dialled, as host and port."""
        return f"127.0.0.1:{self.port}"

    def freeze(self) -> None:
        """Nothing passes any more, and neither end is told."""
        self._whole.clear()

    def thaw(self) -> None:
        """What had been sent meanwhile passes, and all that comes."""
        self._whole.set()

    def cut(self) -> None:
        """Both ends are told that it is over; they may dial again."""
        for end in self._ends:
            end.close()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Joins one connection to one of its own."""
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._ends |= {writer, back}
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass(source, target))
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def close(self) -> None:
        """Ends all of it."""
        self.cut()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(64 * 1024):
                await self._whole.wait()
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()


@asynccontextmanager
async def wire(to: int) -> AsyncIterator[Wire]:
    """A wire to a port of this machine."""
    one = Wire(to)
    server = await asyncio.start_server(one.accept, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        await one.close()
