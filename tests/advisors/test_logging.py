"""One line for each turn, model call and tool run, on any logger, and no secret in it."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import structlog

from retinue import Agent, Usage, tool
from retinue.advisors import Logging
from retinue.errors import ConfigError, ModelRefused
from retinue.models.scripted import Say, Scripted, call
from tests.advisors.talking import WAYS, Way, by_parent, layer, soon

ways = pytest.mark.parametrize("way", WAYS)


class Lines:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str, dict[str, Any]]] = []

    def log(self, level: int, event: str, /, **fields: Any) -> None:
        self.lines.append((level, event, fields))

    def events(self) -> list[str]:
        return [event for _, event, _ in self.lines]

    def fields(self, event: str) -> Mapping[str, Any]:
        return next(fields for _, name, fields in self.lines if name == event)


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


@tool
async def broken() -> str:
    """Never works."""
    raise ValueError("out of order")


async def test_the_reason_of_a_turn_is_masked_and_cut() -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("It said password=hunter22. " + "x" * 5_000)

    lines = Lines()
    await Agent(Scripted(), advisors=[Logging(lines), layer("guard", "turn", refuse)]).run("Hi.")
    reason = lines.fields("turn")["reason"]
    assert "password=***" in reason
    assert len(reason) < 1_100


@pytest.mark.parametrize("preview", [-1, "80", 1.5])
def test_a_preview_that_is_no_number_of_characters_is_refused(preview: Any) -> None:
    with pytest.raises(ConfigError, match="give 0 characters or more"):
        Logging(preview=preview)


@ways
async def test_there_is_one_line_for_each_turn_call_and_tool(way: Way) -> None:
    lines = Lines()
    usage = Usage(input=10, output=5)
    model = Scripted(
        Say(calls=[call("search", query="x"), call("broken")], usage=usage),
        Say(text="the answer", usage=usage),
    )
    agent = Agent(model, tools=[search, broken], advisors=[Logging(lines)])
    await way(agent, "the question", conversation="c")
    assert sorted(lines.events()) == ["chat", "chat", "tool", "tool", "turn"]
    assert lines.events()[0] == "chat"
    assert lines.events()[-1] == "turn"
    assert {level for level, _, _ in lines.lines} == {logging.INFO}
    turn = dict(lines.fields("turn"))
    assert turn.pop("ms") >= 0
    assert turn == {
        "conversation": "c", "question": "the question", "status": "completed", "rounds": 2,
        "input": 20, "output": 10, "answer": "the answer",
    }  # fmt: skip
    first = lines.lines[0][2]
    assert (first["round"], first["messages"], first["calls"]) == (1, 1, "search,broken")
    assert (first["model"], first["input"], first["output"]) == ("script", 10, 5)
    tools = {fields["tool"]: fields for _, event, fields in lines.lines if event == "tool"}
    assert tools["search"]["ok"] is True
    assert tools["search"]["result"] == "found x"
    assert tools["search"]["arguments"] == '{"query":"x"}'
    assert tools["broken"]["ok"] is False
    assert "out of order" in tools["broken"]["result"]


async def test_the_tool_of_a_parent_is_logged_beside_the_turn_of_the_sub_agent() -> None:
    lines = Lines()
    await by_parent(Agent(Scripted("helped"), advisors=[Logging(lines)]), "task")
    assert lines.events() == ["chat", "turn"]
    assert lines.fields("turn")["answer"] == "helped"


@ways
async def test_an_error_is_logged_as_one_and_goes_on(way: Way) -> None:
    lines = Lines()
    agent = Agent(Scripted(ModelRefused("bad key sk-abcdefghijkl")), advisors=[Logging(lines)])
    with pytest.raises(ModelRefused):
        await way(agent, "hi")
    assert lines.events() == ["chat", "turn"]
    for level, _, fields in lines.lines:
        assert level == logging.ERROR
        assert fields["error"] == "ModelRefused: bad key ***"


async def test_an_error_that_quotes_a_book_is_cut() -> None:
    lines = Lines()
    agent = Agent(Scripted(ModelRefused("x" * 100_000)), advisors=[Logging(lines)])
    with pytest.raises(ModelRefused):
        await agent.run("hi")
    assert len(lines.fields("turn")["error"]) <= 1_000 + len("…")


async def test_a_turn_that_is_cancelled_has_its_lines_and_is_no_error() -> None:
    lines, running = Lines(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Takes for ever."""
        running.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(Scripted(call("wait")), tools=[wait], advisors=[Logging(lines)])
    async with agent.stream("hi") as turn:
        await soon(running.wait())
        turn.cancel()
        await soon(turn.result())
    assert lines.events() == ["chat", "tool", "turn"]
    for level, event, fields in lines.lines[1:]:
        assert level == logging.INFO
        assert "CancelledError" in fields["error"], event


@pytest.mark.rule("R-ONION-7")
@pytest.mark.parametrize("hook", ["turn", "chat", "tool"])
async def test_a_layer_that_blocks_is_named(hook: str) -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("not today")

    lines = Lines()
    agent = Agent(
        Scripted(call("search"), "done"),
        tools=[search],
        advisors=[Logging(lines), layer("guard", hook, refuse)],
    )
    await agent.run("hi")
    assert lines.fields(hook)["blocked_by"] == "guard"
    if hook == "turn":
        assert lines.fields("turn")["reason"] == "not today"
        assert lines.fields("turn")["status"] == "blocked"


async def test_previews_are_cut_to_their_length_and_zero_shows_none() -> None:
    model = Scripted(
        *(step for _ in range(2) for step in (call("search", query="q" * 99), "a" * 99))
    )
    short, none = Lines(), Lines()
    for lines, preview in ((short, 10), (none, 0)):
        agent = Agent(model, tools=[search], advisors=[Logging(lines, preview=preview)])
        await agent.run("w" * 99)
    assert short.fields("turn")["question"] == "w" * 10 + "…"
    assert short.fields("turn")["answer"] == "a" * 10 + "…"
    assert short.fields("tool")["arguments"] == '{"query":"…'
    assert short.fields("tool")["result"] == "found qqqq…"
    texts = [value for _, _, fields in none.lines for value in fields.values()]
    assert not [text for text in texts if isinstance(text, str) and text[:3] in ("www", "aaa")]
    assert not {"question", "answer", "arguments", "result"} & {
        name for _, _, fields in none.lines for name in fields
    }


@pytest.mark.rule("R-FAIL-3")
async def test_no_secret_is_in_any_line() -> None:
    lines = Lines()
    secret = "sk-verysecretkey123"
    agent = Agent(
        Scripted(call("search", query=secret), f"your key is {secret}"),
        tools=[search],
        advisors=[Logging(lines, preview=1_000)],
    )
    await agent.run(f"my key is {secret}")
    assert len(lines.lines) == 4
    assert secret not in repr(lines.lines)
    assert lines.fields("turn")["question"] == "my key is ***"


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What goes to the standard logger "retinue"."""
    found: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    logger, keeper = logging.getLogger("retinue"), Keeper()
    before = logger.level
    logger.addHandler(keeper)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.removeHandler(keeper)
    logger.setLevel(before)


async def test_the_standard_logger_gets_one_line_of_text_and_the_fields(
    records: list[logging.LogRecord],
) -> None:
    agent = Agent(Scripted("100 %s sure\nreally"), advisors=[Logging(level=logging.DEBUG)])
    await agent.run("50 % or {more}?\nsay")
    chat, turn = records
    assert turn.levelno == logging.DEBUG
    text = turn.getMessage()
    assert text.startswith("turn ms=")
    assert "question='50 % or {more}?\\nsay'" in text
    assert "answer='100 %s sure\\nreally'" in text
    assert "\n" not in text + chat.getMessage()
    assert vars(turn)["retinue"]["status"] == "completed"


async def test_a_structlog_logger_gets_fields() -> None:
    with structlog.testing.capture_logs() as entries:
        agent = Agent(
            Scripted(call("search"), "done"), tools=[search],
            advisors=[Logging(structlog.get_logger())],
        )  # fmt: skip
        await agent.run("hi")
    assert [entry["event"] for entry in entries] == ["chat", "tool", "chat", "turn"]
    assert {entry["log_level"] for entry in entries} == {"info"}
    assert entries[-1]["answer"] == "done"
    assert entries[1]["tool"] == "search"


@pytest.mark.rule("R-ONION-12")
async def test_turns_at_once_have_lines_of_their_own() -> None:
    lines = Lines()
    model = Scripted(lambda request: f"re {request.messages[-1].text}", repeat=True)
    agent = Agent(model, advisors=[Logging(lines)])
    await soon(asyncio.gather(*(agent.run(f"q{n}", conversation=f"{n}") for n in range(100))))
    turns = [fields for _, event, fields in lines.lines if event == "turn"]
    assert len(turns) == 100
    for fields in turns:
        assert fields["question"] == f"q{fields['conversation']}"
        assert fields["answer"] == f"re q{fields['conversation']}"


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize(
    ("build", "told"),
    [(lambda: Logging("app"), "'app'"), (lambda: Logging(preview=-1), "preview=-1")],  # pyright: ignore[reportArgumentType]
)
def test_what_no_line_could_be_written_with_is_refused(build: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        build()
