"""The rounds of a turn: what the model is sent in each, and when the turn is over."""

from typing import Any

import pytest

from retinue import (
    Agent,
    ChatResponse,
    ConfigError,
    File,
    Image,
    Layer,
    Message,
    Settings,
    assistant,
    system,
    tool,
    user,
)
from retinue.messages import Text, ToolResult
from retinue.models.scripted import Say, Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import look
from tests.strict import check_transcript


@pytest.mark.rule("R-LOOP-1", "R-TOOL-5")
@pytest.mark.behaviour("B-LO-1")
@pytest.mark.parametrize("rounds", [0, 1, 4])
async def test_n_tool_rounds_are_n_and_one_model_calls_each_with_every_message_once(
    rounds: int,
) -> None:
    log = Log()
    model = Scripted(*(call("look", at=str(n)) for n in range(rounds)), "done")
    result = await Agent(model, tools=[look], advisors=[log]).run("?")
    assert len(model.requests) == result.rounds == rounds + 1
    for number, request in enumerate(model.requests):
        assert request.messages == result.messages[: 1 + 2 * number]
        check_transcript(request.messages)
    assert log.messages == list(result.messages)


@pytest.mark.rule("R-LOOP-1")
async def test_the_answer_before_a_call_stays_in_the_transcript() -> None:
    model = Scripted(Say(text="let me see", calls=[call("look", at="it")]), "it is here")
    result = await Agent(model, tools=[look]).run("?")
    assert result.text == "it is here"
    assert [m.text for m in result.messages if m.role == "assistant"] == [
        "let me see",
        "it is here",
    ]


@pytest.mark.rule("R-LOOP-6")
@pytest.mark.behaviour("B-LO-2")
async def test_what_a_layer_adds_between_two_rounds_is_in_all_later_ones() -> None:
    async def remind(request: Any, call_next: Any) -> Any:
        if request.round == 2:
            request = request.with_(messages=(*request.messages, user("Hurry.")))
        return await call_next(request)

    log = Log()
    model = Scripted(call("look", at="a"), call("look", at="b"), call("look", at="c"), "done")
    agent = Agent(model, tools=[look], advisors=[log, Layer("remind", round=remind)])
    result = await agent.run("?")
    counts = [[m.text for m in r.messages].count("Hurry.") for r in model.requests]
    assert counts == [0, 1, 1, 1]
    assert [m.text for m in result.messages].count("Hurry.") == 1
    assert log.messages == list(result.messages)


@pytest.mark.rule("R-LOOP-6")
async def test_what_a_layer_adds_after_a_round_is_in_all_later_ones() -> None:
    async def remind(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        if request.round == 1:
            return response.with_(messages=(*response.messages, user("Hurry.")))
        return response

    log = Log()
    model = Scripted(call("look", at="a"), call("look", at="b"), "done")
    agent = Agent(model, tools=[look], advisors=[log, Layer("remind", round=remind)])
    result = await agent.run("?")
    counts = [[m.text for m in r.messages].count("Hurry.") for r in model.requests]
    assert counts == [0, 1, 1]
    assert log.messages == list(result.messages)


@pytest.mark.rule("R-LOOP-9")
@pytest.mark.behaviour("B-LO-3")
async def test_one_retrieval_serves_all_rounds_of_a_turn() -> None:
    retrievals: list[str] = []

    class Retrieve:
        async def turn(self, request: Any, call_next: Any) -> Any:
            retrievals.append(request.messages[-1].text)
            found = "Known: Oslo is in Norway."
            return await call_next(request.with_(instructions=(*request.instructions, found)))

    model = Scripted(call("look", at="a"), call("look", at="b"), "done")
    agent = Agent(model, instructions="Be short.", tools=[look], advisors=[Retrieve()])
    await agent.run("where?")
    assert retrievals == ["where?"]
    sent = ("Be short.", "Known: Oslo is in Norway.")
    assert [request.instructions for request in model.requests] == [sent] * 3


@pytest.mark.rule("R-LOOP-9")
async def test_instructions_may_be_a_function_plain_or_async_of_the_turn() -> None:
    def plain(request: Any) -> str:
        return f"You talk to {request.owner}."

    async def later(request: Any) -> str:
        return f"You talk to {request.owner}."

    def silent(request: Any) -> None:
        return None

    model = Scripted("hi", repeat=True)
    for instructions in (plain, later, silent, "", None):
        await Agent(model, instructions=instructions).run("?", owner="ada")
    assert [request.instructions for request in model.requests] == [
        ("You talk to ada.",), ("You talk to ada.",), (), (), (),
    ]  # fmt: skip


@pytest.mark.rule("R-LOOP-9")
async def test_instructions_are_asked_for_once_a_turn_and_see_what_layers_made_of_it() -> None:
    asked: list[Any] = []

    def instruct(request: Any) -> str:
        asked.append(request.context.get("tone"))
        return f"Be {request.context['tone']}."

    async def tone(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_context(tone="kind"))

    model = Scripted(call("look", at="a"), "done")
    agent = Agent(model, instructions=instruct, tools=[look], advisors=[Layer("t", turn=tone)])
    await agent.run("?")
    assert asked == ["kind"]
    assert [request.instructions for request in model.requests] == [("Be kind.",)] * 2


@pytest.mark.rule("R-LOOP-9")
async def test_text_is_never_a_template() -> None:
    model = Scripted("ok")
    question = "{name} {0} %s ${x} {{y}}"
    await Agent(model, instructions=question).run(question)
    assert model.requests[0].instructions == (question,)
    assert model.requests[0].messages[0].text == question


@pytest.mark.rule("R-LOOP-7")
@pytest.mark.parametrize(
    "question",
    [
        "text",
        Text("a part"),
        Image(b"\x89PNG"),
        File(url="https://example.com/a.pdf", media_type="application/pdf"),
        ["look at this", Image(b"\x89PNG")],
        user("a message"),
        [system("Be short."), user("earlier"), assistant("yes?"), user("now")],
        [user("one"), user("two")],
    ],
)
async def test_a_turn_works_for_every_kind_of_question(question: Any) -> None:
    model = Scripted("ok")
    result = await Agent(model).run(question)
    assert result.text == "ok"
    assert model.requests[0].messages == result.messages[:-1]
    if isinstance(question, list) and isinstance(question[0], Message):
        assert model.requests[0].messages == tuple(question)


@pytest.mark.rule("R-LOOP-7")
async def test_a_turn_may_begin_with_the_result_of_a_call() -> None:
    one = call("look", at="it")
    messages = [
        user("?"),
        assistant(calls=[one]),
        Message("tool", (ToolResult(one.id, "look", (Text("it is here"),)),)),
    ]
    model = Scripted("here")
    assert (await Agent(model, tools=[look]).run(messages)).text == "here"
    check_transcript(model.requests[0].messages)


@pytest.mark.rule("R-LOOP-7")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ([], "empty"),
        (["", " "], "empty"),
        (Message("user"), "empty"),
        ([user("a"), user("")], "empty"),
        (None, "not NoneType"),
        (42, "not int"),
        (b"bytes", "not bytes"),
        (["a", 42], "int is none of them"),
        (["a", user("b")], "mixes messages with texts"),
    ],
)
async def test_a_question_that_is_none_is_refused_before_any_work(question: Any, told: str) -> None:
    model, notes = Scripted("ok"), []

    async def note(request: Any, call_next: Any) -> Any:
        notes.append(request)
        return await call_next(request)

    agent = Agent(model, advisors=[Layer("note", turn=note)])
    with pytest.raises(ConfigError, match=told):
        await agent.run(question)
    with pytest.raises(ConfigError, match=told):
        agent.stream(question)
    assert notes == model.requests == []


@pytest.mark.rule("R-LOOP-1")
@pytest.mark.behaviour("B-LO-11")
@pytest.mark.parametrize("is_async", [False, True])
async def test_calls_that_are_not_eligible_do_not_run_and_the_answer_is_final(
    is_async: bool,
) -> None:
    ran: list[str] = []

    @tool
    def act() -> str:
        """Acts."""
        ran.append("act")
        return "acted"

    def plain(answer: ChatResponse) -> bool:
        return not answer.message.tool_calls

    async def later(answer: ChatResponse) -> bool:
        return plain(answer)

    log = Log()
    model = Scripted(Say(text="I would act", calls=[call("act"), call("act")]), "hello")
    agent = Agent(model, tools=[act], eligible=later if is_async else plain, advisors=[log])
    result = await agent.run("act!")
    assert ran == []
    assert (result.status, result.text) == ("completed", "I would act")
    told = [r for m in result.messages for r in m.tool_results]
    assert [(r.ok, r.text) for r in told] == [
        (False, "Not run: tools may not run in this turn.")
    ] * 2
    assert (await agent.run("hi")).text == "hello"
    check_transcript(model.requests[1].messages)


@pytest.mark.rule("R-LOOP-1")
async def test_an_answer_without_calls_is_not_asked_about() -> None:
    def never(answer: ChatResponse) -> bool:
        raise AssertionError("asked about an answer without calls")

    assert (await Agent(Scripted("hi"), eligible=never).run("?")).text == "hi"


@pytest.mark.rule("R-LOOP-1")
@pytest.mark.parametrize("choice", ["required", "look"])
async def test_a_forced_choice_counts_for_the_first_round_only(choice: str) -> None:
    model = Scripted(call("look", at="a"), call("look", at="b"), "done")
    settings = Settings(tool_choice=choice, temperature=0.5)
    await Agent(model, tools=[look], settings=settings).run("?")
    assert [r.settings for r in model.requests] == [
        settings, Settings(temperature=0.5), Settings(temperature=0.5),
    ]  # fmt: skip


@pytest.mark.rule("R-LOOP-1")
async def test_a_ban_of_tools_counts_for_every_round() -> None:
    model = Scripted(call("look", at="a"), "done")
    await Agent(model, tools=[look], settings=Settings(tool_choice="none")).run("?")
    assert [r.settings.tool_choice for r in model.requests] == ["none", "none"]


async def test_settings_of_one_turn_go_over_those_of_the_agent() -> None:
    model = Scripted("a", "b")
    agent = Agent(model, settings=Settings(temperature=0.5, max_tokens=10))
    await agent.run("?", settings=Settings(temperature=0.1))
    await agent.run("?")
    assert [r.settings for r in model.requests] == [
        Settings(temperature=0.1, max_tokens=10),
        Settings(temperature=0.5, max_tokens=10),
    ]


@pytest.mark.rule("R-LOOP-1")
async def test_a_request_of_the_same_question_twice_is_two_turns_of_the_same_effect() -> None:
    question = user("?")
    model = Scripted(
        lambda request: call("look", at="it") if len(request.messages) == 1 else "ok", repeat=True
    )
    agent = Agent(model, tools=[look])
    first, second = await agent.run(question), await agent.run(question)
    assert first.id != second.id
    assert [m.text for m in first.messages] == [m.text for m in second.messages]
    assert [len(r.messages) for r in model.requests] == [1, 3, 1, 3]


@pytest.mark.rule("R-LOOP-1")
async def test_a_log_is_let_go_once_however_the_turn_ends() -> None:
    async def fail(request: Any, call_next: Any) -> Any:
        raise OSError("down")

    log = Log()
    await Agent(Scripted("hi"), advisors=[log]).run("?")
    with pytest.raises(OSError, match="down"):
        await Agent(Scripted(), advisors=[log, Layer("fail", chat=fail)]).run("?")
    assert log.closed == 2
