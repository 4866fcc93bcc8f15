"""What every engine must do, as tests: retinue's own engines pass them, and yours should.

Subclass `EngineContract` in a test module and give it the fixture `engine`. It needs pytest and
pytest-asyncio:

    from retinue.testing.engines import EngineContract

    class TestMyEngine(EngineContract):
        @pytest.fixture
        async def engine(self):
            engine = MyEngine()
            yield engine
            await engine.close()
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from retinue.messages import ToolCall
from retinue.testing import engine_tools as tools
from retinue.tools import CancelToken, Engine, Tool, ToolContext, ToolResponse, invoke

PROMPT: Final = 10.0
"""Seconds within which whatever is given up must have ended; generous, for busy machines."""


class Asked:
    """One call of a batch."""

    __slots__ = ("arguments", "id", "tool")

    def __init__(self, tool: Tool, **arguments: Any) -> None:
        self.tool: Tool | None = tool
        self.arguments = arguments
        self.id = ""


async def outcomes(engine: Engine, *calls: Asked) -> list[ToolResponse]:
    """Runs calls as a batch. The ids are `c0`, `c1` and so on."""
    for n, call in enumerate(calls):
        call.id = f"c{n}"

    async def one(call: Asked) -> ToolResponse:
        assert call.tool is not None
        named = ToolCall(call.id, call.tool.name)
        ctx = context(call.id)
        return await invoke(engine, named, call.tool, call.arguments, ctx, names=())

    return await engine.run(calls, one)


def context(call_id: str) -> ToolContext:
    """What the tools of the contract are told of their turn."""
    return ToolContext(
        call_id=call_id,
        turn_id="t1",
        conversation="talk",
        owner="ann",
        data={"unit": "km"},
        state={"slot": 7},
        context={"tenant": "acme"},
        cancel=CancelToken(),
    )


def texts(responses: list[ToolResponse]) -> list[str]:
    """What the model is told."""
    return [response.result.text for response in responses]


class EngineContract:
    """The tests. `concurrent` says whether calls of a batch overlap."""

    concurrent: bool = True

    @pytest.fixture
    def engine(self) -> Engine:
        """The engine to be tested."""
        raise NotImplementedError("Give the test class a fixture called engine.")

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Iterator[str]:
        """Where calls meet; at the end those that still hang are let go."""
        yield str(tmp_path)
        (tmp_path / "release").touch()

    @pytest.mark.rule("R-TOOL-5", "R-ENGINE-1", "R-ENGINE-3")
    async def test_results_stand_in_call_order_with_their_ids(self, engine: Engine) -> None:
        mixed = [tools.echo, tools.echo_sync] * 3
        responses = await outcomes(engine, *(Asked(t, text=str(n)) for n, t in enumerate(mixed)))
        assert texts(responses) == ["0", "1", "2", "3", "4", "5"]
        assert [r.result.call_id for r in responses] == ["c0", "c1", "c2", "c3", "c4", "c5"]
        assert all(r.ok for r in responses)

    @pytest.mark.rule("R-TOOL-5", "R-ENGINE-3")
    async def test_the_first_call_may_finish_last(self, engine: Engine, folder: str) -> None:
        waits_for = "b" if self.concurrent else "a"
        first = Asked(tools.meet, folder=folder, me="a", other=waits_for)
        second = Asked(tools.meet, folder=folder, me="b", other="a")
        assert texts(await outcomes(engine, first, second)) == ["a", "b"]

    async def test_an_empty_batch_has_no_outcomes(self, engine: Engine) -> None:
        assert await outcomes(engine) == []

    @pytest.mark.rule("R-TOOL-6", "R-ENGINE-3")
    @pytest.mark.behaviour("B-LO-18")
    async def test_values_of_all_kinds_reach_the_model_alike(self, engine: Engine) -> None:
        kinds = ["none", "text", "bytes", "set", "nested", "iterator", "unpicklable"]
        calls = [Asked(tools.give, kind=kind) for kind in kinds]
        calls += [Asked(tools.count, to=3), Asked(tools.count_async, to=3)]
        assert texts(await outcomes(engine, *calls)) == [
            "null", "as it is", '"AP8="', '["a","b"]',
            '{"at":{"x":1,"tags":["x"]},"list":[1,null]}', "[0,1,4]", "odd", "[0,1,2]", "[0,1,2]",
        ]  # fmt: skip

    @pytest.mark.rule("R-TOOL-5", "R-FAIL-1", "R-ENGINE-3")
    @pytest.mark.behaviour("B-LO-7")
    async def test_a_failed_call_does_not_cancel_its_siblings(
        self, engine: Engine, folder: str
    ) -> None:
        other = "a" if self.concurrent else "b"
        responses = await outcomes(
            engine,
            Asked(tools.fail, kind="plain"),
            Asked(tools.meet, folder=folder, me="b", other=other),
            Asked(tools.fail_async, kind="signal"),
            Asked(tools.meet, folder=folder, me="a", other="b"),
        )
        assert texts(responses) == ["ValueError: no such city", "b", "Signal: stop here", "a"]
        assert [r.ok for r in responses] == [False, True, False, True]

    @pytest.mark.rule("R-FAIL-1", "R-ENGINE-3")
    @pytest.mark.behaviour("B-LO-7")
    @pytest.mark.parametrize("how", ["fail", "fail_async"])
    async def test_failures_keep_their_name_text_and_class(self, engine: Engine, how: str) -> None:
        kinds = ["plain", "picky", "signal", "group", "again", "quota", "assert", "unclear", "mute"]
        responses = await outcomes(
            engine, *(Asked(getattr(tools, how), kind=kind) for kind in kinds)
        )
        assert texts(responses) == [
            "ValueError: no such city",
            "Picky: no, since so it is",
            "Signal: stop here",
            "ExceptionGroup: two (2 sub-exceptions): ValueError: one; ConnectionError: gone",
            "ToolError: busy",
            "ToolError: no money left",
            "AssertionError: not so",
            "Unclear: no answer",
            "Mute",
        ]
        assert [r.failure for r in responses] == [
            "semantic", "semantic", "semantic", "transient", "transient", "environment", "semantic",
            "transient", "semantic",
        ]  # fmt: skip
        assert [r.retry_after for r in responses] == [None] * 4 + [3.5] + [None] * 4

    @pytest.mark.rule("R-FAIL-1", "R-ENGINE-3")
    @pytest.mark.parametrize("how", ["fail", "fail_async"])
    async def test_a_fatal_failure_is_raised_as_it_is(self, engine: Engine, how: str) -> None:
        with pytest.raises(MemoryError, match="full"):
            await outcomes(engine, Asked(getattr(tools, how), kind="fatal"))

    @pytest.mark.rule("R-TOOL-2", "R-ENGINE-3")
    async def test_wrong_arguments_never_reach_the_body(self, engine: Engine, folder: str) -> None:
        (response,) = await outcomes(engine, Asked(tools.note, folder=folder, name=3))
        assert not response.ok
        assert "'name'" in response.result.text
        assert not (Path(folder) / "notes").exists()

    @pytest.mark.rule("R-TOOL-9", "R-ENGINE-3")
    @pytest.mark.behaviour("B-LO-13")
    async def test_a_call_past_its_time_is_a_transient_failure(
        self, engine: Engine, folder: str
    ) -> None:
        responses = await outcomes(
            engine,
            Asked(tools.hang, folder=folder),
            Asked(tools.hang_async),
            Asked(tools.echo_sync, text="untouched"),
        )
        assert [r.failure for r in responses] == ["transient", "transient", None]
        assert texts(responses)[0] == "The tool 'hang' gave no result within 0.2 seconds."
        assert texts(responses)[2] == "untouched"
        assert not responses[0].writes

    @pytest.mark.rule("R-TOOL-11", "R-ENGINE-3")
    @pytest.mark.behaviour("B-LO-10")
    async def test_tools_see_the_context_variables_of_the_caller(self, engine: Engine) -> None:
        token = tools.LABEL.set("from outside")
        try:
            together = await outcomes(engine, Asked(tools.label), Asked(tools.label_async))
            alone = await outcomes(engine, Asked(tools.label))
        finally:
            tools.LABEL.reset(token)
        assert texts(together + alone) == ["from outside"] * 3

    @pytest.mark.rule("R-TOOL-8", "R-ENGINE-3")
    @pytest.mark.behaviour("B-LO-8")
    async def test_a_batch_with_a_serial_tool_runs_in_call_order(
        self, engine: Engine, folder: str
    ) -> None:
        names = ["a", "b", "c", "d"]
        calls = [Asked(tools.note, folder=folder, name=name) for name in names]
        calls[2] = Asked(tools.note_serial, folder=folder, name="c")
        assert texts(await outcomes(engine, *calls)) == names
        noted = (Path(folder) / "notes").read_text().splitlines()
        assert noted == [f"{name} {what}" for name in names for what in ("begins", "ends")]

    @pytest.mark.rule("R-TOOL-4", "R-ENGINE-3")
    async def test_writes_are_kept_apart_and_failures_have_none(self, engine: Engine) -> None:
        responses = await outcomes(
            engine,
            Asked(tools.write, value=1),
            Asked(tools.write_and_fail, value=2),
            Asked(tools.write, value=3),
        )
        assert [dict(r.writes) for r in responses] == [{"slot": 1}, {}, {"slot": 3}]
        assert texts(responses)[0] == "wrote 1"

    @pytest.mark.rule("R-TOOL-4", "R-TOOL-6", "R-ENGINE-3")
    async def test_a_stream_that_comes_with_writes_is_read_to_its_end(self, engine: Engine) -> None:
        responses = await outcomes(
            engine, Asked(tools.write_stream, to=3), Asked(tools.write_stream_async, to=2)
        )
        assert texts(responses) == ["[0,1,2]", "[0,1]"]
        assert [dict(r.writes) for r in responses] == [{"slot": 3}, {"slot": 2}]

    @pytest.mark.rule("R-TOOL-3", "R-ENGINE-3")
    async def test_a_tool_sees_what_it_may_know_of_its_turn(self, engine: Engine) -> None:
        responses = await outcomes(engine, Asked(tools.look), Asked(tools.look))
        assert texts(responses) == [
            f'["{call}","t1","talk","ann",{{"unit":"km"}},7,"acme",false]' for call in ("c0", "c1")
        ]

    @pytest.mark.rule("R-ENGINE-3")
    @pytest.mark.behaviour("B-LO-14")
    async def test_a_cancelled_batch_ends_and_the_engine_works_on(
        self, engine: Engine, folder: str
    ) -> None:
        batch = asyncio.create_task(
            outcomes(engine, Asked(tools.hold, folder=folder), Asked(tools.echo, text="x"))
        )
        await asyncio.to_thread(tools.wait_for, Path(folder) / "begun")
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(batch, PROMPT)
        assert texts(await outcomes(engine, Asked(tools.echo, text="next"))) == ["next"]

    @pytest.mark.rule("R-ENGINE-1")
    @pytest.mark.parametrize("error", [LookupError, MemoryError, asyncio.CancelledError])
    async def test_what_the_given_function_raises_ends_the_batch(
        self, engine: Engine, error: type[BaseException]
    ) -> None:
        held = asyncio.Event()
        ended: list[str] = []

        async def one(call: Asked) -> str:
            if call.id == "faulty":
                if self.concurrent:
                    await held.wait()
                raise error("a layer is at fault")
            held.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(call.id)
            return "never"

        faulty, other = Asked(tools.echo), Asked(tools.echo)
        faulty.id, other.id = "faulty", "other"
        with pytest.raises(error):
            await asyncio.wait_for(engine.run([faulty, other], one), PROMPT)
        assert ended == (["other"] if self.concurrent else [])
