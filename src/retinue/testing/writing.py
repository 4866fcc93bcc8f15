"""What `Store.writing` must do, as tests; a part of `retinue.testing.stores.StoreContract`."""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

import pytest

from retinue.errors import ConversationBusy
from retinue.messages import user
from retinue.stores import Store

T = TypeVar("T")

PATIENCE: Final = 20.0
"""Seconds after which a wait that should have ended is a failure."""


async def soon(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """What the work returns; it fails if it takes for ever."""
    return await asyncio.wait_for(work, PATIENCE)


class Writer:
    """A task that enters `writing`, notes its name, and stays until `leave` is set."""

    def __init__(self, store: Store, name: str, log: list[str]) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._write(store, name, log))

    async def _write(self, store: Store, name: str, log: list[str]) -> None:
        async with store.writing("c"):
            log.append(name)
            self.entered.set()
            await self.leave.wait()

    async def finish(self) -> None:
        """Waits until it has entered, and lets it leave."""
        await soon(self.entered.wait())
        self.leave.set()
        await soon(self.task)


async def enter(holding: AbstractAsyncContextManager[None]) -> None:
    """Enters, and goes away without leaving."""
    await holding.__aenter__()


async def leave(holding: AbstractAsyncContextManager[None]) -> None:
    """Leaves what another task entered."""
    await holding.__aexit__(None, None, None)


async def in_line(store: Store) -> None:
    """Gives the tasks begun so far the time to get in line: a few round trips to the store."""
    for _ in range(3):
        await store.known("c", ["m"])
        await asyncio.sleep(0)


@pytest.mark.asyncio
class WritingContract:
    """One holder per conversation, in order of arrival, whatever becomes of the others."""

    @pytest.fixture
    def store(self) -> Store:
        """A fresh and empty store; a subclass gives it."""
        raise NotImplementedError("Give the subclass of StoreContract a fixture named store.")

    async def test_writers_follow_each_other_in_order_of_arrival(self, store: Store) -> None:
        log: list[str] = []
        writers: list[Writer] = []
        for name in "abcd":
            writers.append(Writer(store, name, log))
            await in_line(store)
        await soon(writers[0].entered.wait())
        assert log == ["a"]
        for n, writer in enumerate(writers, 1):
            await soon(writer.entered.wait())
            assert log == list("abcd"[:n])
            await writer.finish()

    async def test_without_waiting_a_second_writer_is_refused(self, store: Store) -> None:
        async with store.writing("a busy one"):
            with pytest.raises(ConversationBusy, match="a busy one"):
                async with store.writing("a busy one", wait=False):
                    pass
            async with store.writing("another", wait=False):
                pass
        async with store.writing("a busy one", wait=False):
            pass

    async def test_the_store_works_on_while_a_conversation_is_held(self, store: Store) -> None:
        async with store.writing("c"):
            await soon(store.append("c", [user("hi")], turn="t"))
            assert len(await soon(store.tail("c"))) == 1

    async def test_a_cancelled_waiter_leaves_the_line(self, store: Store) -> None:
        log: list[str] = []
        first = Writer(store, "first", log)
        await soon(first.entered.wait())
        second = Writer(store, "second", log)
        await in_line(store)
        third = Writer(store, "third", log)
        await in_line(store)
        second.task.cancel()
        await asyncio.wait([second.task])
        assert second.task.cancelled()
        await first.finish()
        await third.finish()
        assert log == ["first", "third"]

    async def test_a_waiter_cancelled_at_its_turn_passes_it_on(self, store: Store) -> None:
        log: list[str] = []
        first = Writer(store, "first", log)
        await soon(first.entered.wait())
        second = Writer(store, "second", log)
        await in_line(store)
        third = Writer(store, "third", log)
        await in_line(store)
        first.leave.set()
        first.task.add_done_callback(lambda _: second.task.cancel())
        await asyncio.wait([first.task, second.task])
        await third.finish()
        assert log[0] == "first"
        assert log[-1] == "third"

    async def test_a_cancelled_holder_holds_no_longer(self, store: Store) -> None:
        log: list[str] = []
        first = Writer(store, "first", log)
        await soon(first.entered.wait())
        second = Writer(store, "second", log)
        await in_line(store)
        first.task.cancel()
        await second.finish()
        assert log == ["first", "second"]

    async def test_an_error_of_the_holder_passes_and_frees(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError):
            async with store.writing("c"):
                raise ZeroDivisionError
        async with store.writing("c", wait=False):
            pass

    async def test_it_may_be_held_from_one_task_to_another(self, store: Store) -> None:
        holding = store.writing("c")
        await soon(asyncio.create_task(enter(holding)))
        with pytest.raises(ConversationBusy):
            async with store.writing("c", wait=False):
                pass
        await soon(asyncio.create_task(leave(holding)))
        async with store.writing("c", wait=False):
            pass

    async def test_twenty_writers_never_overlap(self, store: Store) -> None:
        inside = 0

        async def write(n: int) -> None:
            nonlocal inside
            async with store.writing("c"):
                inside += 1
                assert inside == 1
                await store.append("c", [user(f"{n}?"), user(f"{n}!")], turn=str(n))
                await store.append("c", [user(f"{n}.")], turn=str(n))
                inside -= 1

        await soon(asyncio.gather(*(write(n) for n in range(20))))
        turns = [entry.turn for entry in await store.tail("c")]
        assert all(len(set(turns[n : n + 3])) == 1 for n in range(0, 60, 3))
