"""One call: from the model's arguments to what the model is told. See also the engine suite."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from retinue.errors import ToolError
from retinue.messages import Image, ToolCall
from retinue.tools import (
    CancelToken,
    Concurrent,
    Sequential,
    Tool,
    ToolContext,
    ToolResponse,
    ToolReturn,
    invoke,
    tool,
)


def context(cancel: CancelToken | None = None) -> ToolContext:
    return ToolContext(call_id="c1", turn_id="t1", cancel=cancel or CancelToken())


async def call(
    called: Tool | None,
    arguments: Mapping[str, Any] | None = None,
    *,
    written: str = "{}",
    names: tuple[str, ...] = (),
    ctx: ToolContext | None = None,
) -> ToolResponse:
    name = "invented" if called is None else called.name
    return await invoke(
        Concurrent(),
        ToolCall("c1", name, written),
        called,
        arguments,
        ctx or context(),
        names=names,
    )


@tool
async def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


@pytest.mark.rule("R-TOOL-6")
async def test_a_success_has_its_result_and_no_failure() -> None:
    response = await call(add, {"a": 2})
    assert (response.ok, response.result.text, response.result.call_id) == (True, "3", "c1")
    assert (response.failure, response.error, dict(response.writes)) == (None, None, {})


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.behaviour("B-LO-5")
async def test_an_invented_name_is_answered_with_the_valid_ones() -> None:
    response = await call(None, {}, names=("add", "search"))
    assert (response.ok, response.failure) == (False, "semantic")
    assert response.result.text == "There is no tool 'invented'. The tools are: add, search."


@pytest.mark.behaviour("B-LO-5")
async def test_a_long_list_of_names_is_cut() -> None:
    many = await call(None, {}, names=tuple(f"t{n}" for n in range(150)))
    assert many.result.text.endswith("t98, t99 and 50 more.")
    none = await call(None, {})
    assert none.result.text == ("There is no tool 'invented', and no other; answer without tools.")


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.behaviour("B-LO-6")
@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('{"a": ', "they are no valid JSON (Input data was truncated)"),
        ("add two", "they are no valid JSON (JSON is malformed: invalid character (byte 0))"),
        ("[1, 2]", "they are no JSON object"),
        ("null", "they are no JSON object but null"),
    ],
)
async def test_arguments_that_are_no_object_are_told_why(written: str, told: str) -> None:
    response = await call(add, None, written=written)
    assert (response.ok, response.failure) == (False, "semantic")
    assert response.result.text == (
        f"The arguments of 'add' cannot be read: {told}. Write one JSON object."
    )


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.behaviour("B-LO-6")
async def test_the_body_does_not_run_on_wrong_arguments() -> None:
    ran: list[int] = []

    @tool
    def note(x: int) -> None:
        """Notes it."""
        ran.append(x)

    for wrong in ({}, {"x": "1"}, {"x": 1, "y": 2}):
        response = await call(note, wrong)
        assert (response.ok, response.failure) == (False, "semantic")
        assert response.result.text.startswith("The arguments of 'note' do not fit: ")
    assert ran == []


@pytest.mark.rule("R-TOOL-4")
async def test_writes_come_with_a_success_only() -> None:
    @tool
    def write(ok: bool) -> ToolReturn:
        """Writes."""
        if not ok:
            raise ValueError("no")
        return ToolReturn(Image(b"x"), {"slot": [1]})

    good, bad = await call(write, {"ok": True}), await call(write, {"ok": False})
    assert (good.result.parts, good.writes) == ((Image(b"x"),), {"slot": [1]})
    assert dict(bad.writes) == {}


async def test_writes_that_are_no_mapping_are_the_failure_of_the_tool() -> None:
    @tool
    def write() -> ToolReturn:
        """Writes wrongly."""
        return ToolReturn("x", ["slot"])  # type: ignore[arg-type]

    response = await call(write, {})
    assert not response.ok
    assert "writes=['slot']; they must be a mapping" in response.result.text


class NotFound(Exception):
    status = 404


class Busy(Exception):
    status = 503
    retry_after = 2.0


class Mine(Exception):
    failure = "environment"


@pytest.mark.rule("R-FAIL-1")
@pytest.mark.parametrize(
    ("error", "failure", "told"),
    [
        (ValueError("bad"), "semantic", "ValueError: bad"),
        (KeyError(), "semantic", "KeyError"),
        (RecursionError("deep"), "semantic", "RecursionError: deep"),
        (AssertionError(), "semantic", "AssertionError"),
        (TimeoutError("slow"), "transient", "TimeoutError: slow"),
        (ConnectionResetError("gone"), "transient", "ConnectionResetError: gone"),
        (OSError(28, "full"), "environment", "OSError: [Errno 28] full"),
        (PermissionError(13, "no"), "environment", "PermissionError: [Errno 13] no"),
        (NotFound("x"), "semantic", "NotFound: x"),
        (Busy("x"), "transient", "Busy: x"),
        (Mine("x"), "environment", "Mine: x"),
        (ToolError("x", failure="transient", retry_after=1), "transient", "ToolError: x"),
        (
            ExceptionGroup(
                "all", [ValueError("a"), ExceptionGroup("in", [PermissionError(1, "b")])]
            ),
            "environment",
            "ExceptionGroup: all (2 sub-exceptions): ValueError: a; PermissionError: [Errno 1] b",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_a_failure_has_its_class_and_its_text(
    error: BaseException, failure: str, told: str
) -> None:
    @tool
    async def fail() -> None:
        """Fails."""
        raise error

    response = await call(fail, {})
    assert (response.failure, response.result.text) == (failure, told)
    assert response.error is error
    assert not response.ok


@pytest.mark.rule("R-FAIL-1")
async def test_the_longest_wait_that_a_failure_asks_for_is_kept() -> None:
    @tool
    async def fail() -> None:
        """Fails twice at once."""
        raise ExceptionGroup("both", [Busy("a"), ToolError("b", retry_after=5)])

    assert (await call(fail, {})).retry_after == 5


async def test_an_exception_that_cannot_be_shown_is_still_a_result() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    @tool
    async def fail() -> None:
        """Fails badly."""
        raise Broken

    assert (await call(fail, {})).result.text == "Broken"


@pytest.mark.rule("R-FAIL-1")
@pytest.mark.parametrize("error", [MemoryError(), SystemExit(2), KeyboardInterrupt()])
async def test_fatal_failures_are_raised_as_they_are(error: BaseException) -> None:
    @tool
    async def fail() -> None:
        """Is in danger."""
        raise error

    with pytest.raises(type(error)) as caught:
        await call(fail, {})
    assert caught.value is error

    @tool
    async def fail_together() -> None:
        """Is in danger, among others."""
        raise BaseExceptionGroup("all", [ValueError(), error])

    with pytest.raises(BaseExceptionGroup):
        await call(fail_together, {})


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.behaviour("B-LO-14")
async def test_a_cancelled_turn_is_no_failure_of_the_tool() -> None:
    began, saw = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        """Waits for ever."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            saw.set()

    task = asyncio.create_task(call(wait, {}))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert saw.is_set()


async def test_a_turn_that_stops_itself_from_within_a_tool_is_no_failure_either() -> None:
    token = CancelToken()

    @tool
    async def stop() -> None:
        """Stops the turn, as a budget does."""
        token.cancel()
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await call(stop, {}, ctx=context(token))


@pytest.mark.rule("R-TOOL-3")
async def test_the_token_of_a_call_is_its_own_and_follows_that_of_the_turn() -> None:
    turn = CancelToken()
    seen: list[CancelToken] = []

    @tool(timeout=0.01)
    async def wait(where: ToolContext) -> None:
        """Takes too long."""
        seen.append(where.cancel)
        await asyncio.Event().wait()

    response = await call(wait, {}, ctx=context(turn))
    assert response.failure == "transient"
    assert seen[0].cancelled
    assert not turn.cancelled
    child = CancelToken(turn)
    turn.cancel()
    assert child.cancelled


@pytest.mark.rule("R-TOOL-3")
async def test_the_context_is_read_only() -> None:
    @tool
    def meddle(ctx: ToolContext) -> None:
        """Tries to change it."""
        ctx.owner = "somebody else"  # type: ignore[misc]

    response = await call(meddle, {})
    assert response.result.text == "AttributeError: immutable type: 'ToolContext'"


async def test_an_iterator_that_fails_half_way_is_the_failure_of_the_tool() -> None:
    @tool
    def numbers() -> Any:
        """Gives one, then fails."""
        yield 1
        raise ValueError("no more")

    @tool
    async def numbers_async() -> Any:
        """Gives one, then fails, on the loop."""
        yield 1
        raise ValueError("no more")

    for one in (numbers, numbers_async):
        assert (await call(one, {})).result.text == "ValueError: no more"


async def test_an_iterator_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import itertools

    from retinue.tools import results
    from retinue.tools.engines import base

    monkeypatch.setattr(results, "ITEM_LIMIT", 10)
    monkeypatch.setattr(base, "ITEM_LIMIT", 10)
    closed: list[str] = []

    @tool
    def endless() -> Any:
        """Counts for ever."""
        return itertools.count()

    @tool
    async def endless_async() -> Any:
        """Counts for ever, on the loop."""
        try:
            while True:
                yield 0
        finally:
            closed.append("closed")

    for one in (endless, endless_async):
        response = await call(one, {})
        assert "The result has more than 10 items" in response.result.text
    assert closed == ["closed"]


async def test_an_iterator_inside_a_return_is_read_by_the_tool() -> None:
    @tool
    def numbers() -> ToolReturn:
        """Gives numbers and writes."""
        return ToolReturn(iter([1, 2]), {"slot": 1})

    response = await invoke(Sequential(), ToolCall("c", "n"), numbers, {}, context(), names=())
    assert (response.result.text, response.writes) == ("[1,2]", {"slot": 1})
