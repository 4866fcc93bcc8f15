"""The onion round a real turn: how often each hook runs, in which order, and what it sees."""

import asyncio
from typing import Any

import pytest

from retinue import Advisor, Agent, Layer, ToolContext, assistant, tool
from retinue.chains.events import TextChunk
from retinue.models.scripted import Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import look
from tests.strict import check_transcript


class Tracer(Advisor):
    """Notes when each of its hooks begins and ends."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    async def _note(self, hook: str, request: Any, call_next: Any) -> Any:
        self.notes.append(f"+{self.name}.{hook}")
        try:
            return await call_next(request)
        finally:
            self.notes.append(f"-{self.name}.{hook}")

    async def turn(self, request: Any, call_next: Any) -> Any:
        return await self._note("turn", request, call_next)

    async def round(self, request: Any, call_next: Any) -> Any:
        return await self._note("round", request, call_next)

    async def chat(self, request: Any, call_next: Any) -> Any:
        return await self._note("chat", request, call_next)

    async def tool(self, request: Any, call_next: Any) -> Any:
        return await self._note("tool", request, call_next)


@pytest.mark.rule("R-ONION-1", "R-ONION-2")
@pytest.mark.behaviour("B-ON-1", "B-ON-10")
async def test_one_tool_round_runs_each_hook_as_often_as_its_name_says() -> None:
    notes: list[str] = []
    agent = Agent(
        Scripted([call("look", at="a"), call("look", at="b")], "done"),
        tools=[look],
        advisors=[Tracer("out", notes), Tracer("in", notes)],
    )
    await agent.run("?")
    began = [note for note in notes if note.startswith("+out")]
    assert {hook: began.count(f"+out.{hook}") for hook in ("turn", "round", "chat", "tool")} == {
        "turn": 1,
        "round": 2,
        "chat": 2,
        "tool": 2,
    }
    assert notes[:8] == [
        "+out.turn", "+in.turn", "+out.round", "+in.round", "+out.chat", "+in.chat", "-in.chat",
        "-out.chat",
    ]  # fmt: skip
    assert notes[-2:] == ["-in.turn", "-out.turn"]
    for hook in ("turn", "round", "chat"):
        _lies_inside(notes, hook)


def _lies_inside(notes: list[str], hook: str) -> None:
    open_ = False
    for note in notes:
        if note == f"+out.{hook}":
            open_ = True
        elif note == f"-out.{hook}":
            open_ = False
        elif note.endswith(f"in.{hook}"):
            assert open_, notes


@pytest.mark.behaviour("B-ON-2")
async def test_a_log_outside_a_layer_that_changes_the_answer_sees_the_change() -> None:
    seen: list[str] = []

    async def watch(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        seen.append(response.text)
        return response

    async def sign(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=response.message.with_text(f"{response.text}!"))

    for hook in ("turn", "chat"):
        watching: dict[str, Any] = {hook: watch}
        signing: dict[str, Any] = {hook: sign}
        layers = [Layer("watch", **watching), Layer("sign", **signing)]
        result = await Agent(Scripted("hi"), advisors=layers).run("?")
        assert result.text == "hi!"
    assert seen == ["hi!", "hi!"]


@pytest.mark.rule("R-ONION-5")
@pytest.mark.behaviour("B-ON-7")
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
async def test_a_layer_that_replaces_the_answer_does_so_in_a_stream_too(hook: str) -> None:
    async def replace(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=response.message.with_text("mine"))

    hooks: dict[str, Any] = {hook: replace}
    log = Log()
    agent = Agent(Scripted("theirs", "theirs"), advisors=[log, Layer("replace", **hooks)])
    assert (await agent.run("one?")).text == "mine"
    turn = agent.stream("two?")
    events = [event async for event in turn]
    last = max(event.attempt for event in events)
    shown = [e.text for e in events if isinstance(e, TextChunk) and e.attempt == last]
    assert shown == ["mine"]
    assert turn.outcome is not None
    assert turn.outcome.text == "mine"
    assert [m.text for m in log.valid] == ["one?", "mine", "two?", "mine"]


@pytest.mark.rule("R-ONION-5")
@pytest.mark.behaviour("B-ON-13")
@pytest.mark.parametrize("hook", ["turn", "round", "chat", "tool"])
async def test_an_error_of_a_layer_reaches_the_caller_as_it_is(hook: str) -> None:
    notes: list[str] = []
    error = LookupError("mine")

    async def fail(request: Any, call_next: Any) -> Any:
        raise error

    hooks: dict[str, Any] = {hook: fail}
    agent = Agent(
        Scripted(call("look", at="a"), "done"),
        tools=[look],
        advisors=[Tracer("out", notes), Tracer("in", notes), Layer("fail", **hooks)],
    )
    with pytest.raises(LookupError) as caught:
        await agent.run("?")
    assert caught.value is error
    ended = [note for note in notes if note.startswith("-")]
    assert notes[-2:] == ["-in.turn", "-out.turn"]
    assert ended.count("-out.turn") == ended.count("-in.turn") == 1
    assert len(ended) == len(notes) / 2


@pytest.mark.rule("R-ONION-3")
@pytest.mark.behaviour("B-LO-20")
@pytest.mark.parametrize("hook", ["turn", "round", "chat", "tool"])
async def test_a_request_can_be_sent_inward_twice_with_the_same_effect(hook: str) -> None:
    responses: list[Any] = []

    async def twice(request: Any, call_next: Any) -> Any:
        responses.append(await call_next(request))
        responses.append(await call_next(request))
        return responses[-1]

    ran: list[str] = []

    @tool
    def note(text: str) -> str:
        """Notes."""
        ran.append(text)
        return f"noted {text}"

    def answer(request: Any) -> Any:
        done = request.messages[-1].role == "tool"
        return "done" if done else call("note", text="x")

    hooks: dict[str, Any] = {hook: twice}
    log = Log()
    model = Scripted(answer, repeat=True)
    agent = Agent(model, tools=[note], advisors=[log, Layer("twice", **hooks)])
    result = await agent.run("?")
    first, second = responses[:2]
    if hook == "tool":
        assert (first.result, second.result) == (first.result, first.result)
    else:
        texts = [[m.text for m in one.messages] for one in responses[:2] if hook != "chat"]
        assert texts[:1] == texts[1:]
    assert result.text == "done"
    assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    check_transcript(result.messages)
    assert log.valid == list(result.messages)
    assert len(ran) == (1 if hook == "chat" else 2)
    for request in model.requests:
        check_transcript(request.messages)


@pytest.mark.rule("R-ONION-3")
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_chat_layer_may_ask_two_models_at_once_and_keep_one_answer(streamed: bool) -> None:
    answered = asyncio.Event()

    async def race(request: Any, call_next: Any) -> Any:
        async def late() -> Any:
            await answered.wait()
            return await call_next(request.with_(model=Scripted("slow")))

        async def early() -> Any:
            response = await call_next(request.with_(model=Scripted("quick")))
            answered.set()
            return response

        async with asyncio.timeout(5):
            first, _ = await asyncio.gather(early(), late())
        return first

    log = Log()
    agent = Agent(Scripted(), advisors=[log, Layer("race", chat=race)])
    if streamed:
        events = [event async for event in agent.stream("?")]
        last = max(event.attempt for event in events)
        shown = [e.text for e in events if isinstance(e, TextChunk) and e.attempt == last]
        assert shown == ["quick"]
    else:
        result = await agent.run("?")
        assert (result.text, result.blocked_by) == ("quick", None)
    assert [message.text for message in log.valid] == ["?", "quick"]


@pytest.mark.rule("R-ONION-12")
@pytest.mark.behaviour("B-ON-9")
async def test_a_hundred_turns_at_once_on_one_agent_share_nothing() -> None:
    everyone = asyncio.Barrier(100)

    class Counting(Advisor):
        async def turn(self, request: Any, call_next: Any) -> Any:
            request.local(self)["question"] = request.messages[0].text
            async with asyncio.timeout(20):
                await everyone.wait()
            return await call_next(request)

        async def chat(self, request: Any, call_next: Any) -> Any:
            assert request.local(self)["question"] == request.messages[0].text
            await asyncio.sleep(0)
            return await call_next(request)

        async def tool(self, request: Any, call_next: Any) -> Any:
            question = request.local(self)["question"]
            return await call_next(request.with_(arguments={"at": question}))

    def answer(request: Any) -> Any:
        if request.messages[-1].role == "user":
            return call("look", at="?")
        return request.messages[-1].tool_results[0].text

    agent = Agent(Scripted(answer, repeat=True), tools=[look], advisors=[Counting()])
    results = await asyncio.gather(*(agent.run(f"question {n}") for n in range(100)))
    assert [one.text for one in results] == [f"question {n} is here" for n in range(100)]
    assert [one.messages[0].text for one in results] == [f"question {n}" for n in range(100)]
    assert len({one.id for one in results}) == 100


async def test_layers_know_the_agent_and_its_own_model() -> None:
    seen: list[tuple[str, Any]] = []

    async def look(request: Any, call_next: Any) -> Any:
        seen.append((request.agent, request.own_model))
        return await call_next(request)

    model = Scripted("hi")
    await Agent(model, advisors=[Layer("Look", turn=look, chat=look)], name="ada").run("go")
    assert seen == [("ada", model)] * 2


@pytest.mark.behaviour("B-ON-12")
async def test_context_goes_inward_through_every_round_and_back_to_the_caller() -> None:
    seen: list[tuple[str, int, str]] = []

    class Mark(Advisor):
        async def turn(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.with_context(who="ada"))

    class Read(Advisor):
        async def turn(self, request: Any, call_next: Any) -> Any:
            seen.append(("turn", 0, request.context["who"]))
            return await call_next(request)

        async def round(self, request: Any, call_next: Any) -> Any:
            seen.append(("round", request.round, request.context["who"]))
            return await call_next(request)

        async def chat(self, request: Any, call_next: Any) -> Any:
            seen.append(("chat", request.round, request.context["who"]))
            return await call_next(request)

        async def tool(self, request: Any, call_next: Any) -> Any:
            seen.append(("tool", request.round, request.context["who"]))
            return await call_next(request)

    @tool
    def whoami(ctx: ToolContext) -> str:
        """Says who."""
        return ctx.context["who"]

    agent = Agent(Scripted(call("whoami"), "done"), tools=[whoami], advisors=[Mark(), Read()])
    result = await agent.run("?", context={"from": "caller"})
    assert seen == [
        ("turn", 0, "ada"), ("round", 1, "ada"), ("chat", 1, "ada"), ("tool", 1, "ada"),
        ("round", 2, "ada"), ("chat", 2, "ada"),
    ]  # fmt: skip
    assert result.context == {"from": "caller", "who": "ada"}
    assert result.messages[2].tool_results[0].text == "ada"


@pytest.mark.rule("R-ONION-6")
async def test_what_a_round_layer_adds_to_the_context_stays_inside_its_round() -> None:
    seen: list[Any] = []

    async def mark(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_context(round=request.round))

    async def read(request: Any, call_next: Any) -> Any:
        seen.append(request.context.get("round"))
        return await call_next(request)

    layers = [Layer("mark", round=mark), Layer("read", chat=read, tool=read)]
    agent = Agent(Scripted(call("look", at="a"), "done"), tools=[look], advisors=layers)
    result = await agent.run("?")
    assert seen == [1, 1, 2]
    assert result.context == {}


async def test_a_layer_that_forgets_to_return_is_named() -> None:
    async def forgetful(request: Any, call_next: Any) -> Any:
        await call_next(request)

    with pytest.raises(Exception, match="The layer forgetful returned NoneType"):
        await Agent(Scripted("hi"), advisors=[Layer("forgetful", chat=forgetful)]).run("?")


async def test_an_answer_that_a_layer_gives_twice_is_kept_twice() -> None:
    kept = assistant("the same as ever")

    async def cached(request: Any, call_next: Any) -> Any:
        return request.respond(kept)

    for hook in ("turn", "round", "chat"):
        hooks: dict[str, Any] = {hook: cached}
        log = Log()
        agent = Agent(Scripted(), advisors=[log, Layer("cached", **hooks)])
        await agent.run("one?")
        await agent.run("two?")
        assert [m.text for m in log.valid] == ["one?", kept.text, "two?", kept.text]
        check_transcript(log.valid)


@pytest.mark.rule("R-ONION-3")
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
async def test_going_inward_twice_at_once_logs_only_what_was_kept(hook: str) -> None:
    async def both(request: Any, call_next: Any) -> Any:
        answers = await asyncio.gather(call_next(request), call_next(request))
        return answers[0]

    class Yielding(Scripted):
        async def generate(self, request: Any, send: Any) -> Any:
            await asyncio.sleep(0)
            return await super().generate(request, send)

    def answer(request: Any) -> Any:
        return call("look", at="it") if len(request.messages) < 4 else "done"

    hooks: dict[str, Any] = {hook: both}
    log = Log()
    model = Yielding(answer, repeat=True)
    result = await Agent(model, tools=[look], advisors=[log, Layer("both", **hooks)]).run("?")
    assert sorted(len(request.messages) for request in model.requests) == [1, 1, 3, 3, 5, 5]
    assert len(result.messages) == 6
    assert log.valid == list(result.messages)
    for request in model.requests:
        check_transcript(request.messages)
