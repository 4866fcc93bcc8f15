"""Each place by choice: what is shown, stored, sent to the model, and given to and by tools."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, cast, get_args

import pytest
from hypothesis import given, settings

from retinue import Agent, ConfigError, Image, Layer, assistant, tool, user
from retinue.advisors import Memory, QuestionAnswer, Redact
from retinue.advisors.redact.advisor import Place
from retinue.advisors.redact.places import in_result
from retinue.chains import OnionWarning
from retinue.chains.events import TextChunk, ThinkingChunk, ToolArguments, ToolFinished, ToolStarted
from retinue.messages import Text, Thinking, ToolResult
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from retinue.retrieval import Document
from retinue.stores import InMemory
from tests.advisors.holding import cuts, split
from tests.advisors.talking import WAYS, Way, by_parent, kept, said, sent, strictly
from tests.advisors.test_redact_split import texts
from tests.agent.reading import read

ANN, BOB, CLEO, DAN = "ann@example.org", "bob@example.org", "cleo@example.org", "dan@example.org"
PLACES: tuple[Place, ...] = get_args(Place)
ways = pytest.mark.parametrize("way", WAYS)


class Post:
    """A tool, and what it was given."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def tool(self, **options: Any) -> Any:
        @tool(name="post", **options)
        async def post(to: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
            """Posts."""
            self.given.append((to, more))
            return {"by": DAN, "n": 5, "to": [to]}

        return post


def script() -> Scripted:
    first = Say(text=f"I ask {BOB}.", calls=[call("post", to=CLEO, more={"cc": [CLEO], "n": 1})])
    return Scripted(first, Say(text=["So says bob@", "example", ".org."]), "next")


def all_of(*places: Place) -> tuple[Agent, Scripted, InMemory, Post]:
    store, model, post = InMemory(), script(), Post()
    advisors = [Redact(where=places), Memory(store)]
    return Agent(model, tools=[post.tool()], advisors=advisors), model, store, post


# -- shown and stored, as it is by default -----------------------------------------------------


@pytest.mark.rule("R-STREAM-3", "R-STREAM-5")
@pytest.mark.behaviour("B-ST-1", "B-ST-4")
@ways
async def test_an_address_split_over_three_chunks_is_redacted_in_stream_result_and_log(
    way: Way,
) -> None:
    store = InMemory()
    model = Scripted(Say(text=["Write to ann@", "example", ".org today."]))
    agent = Agent(model, advisors=[Redact(), Memory(store)])
    response = await way(agent, "Who?", conversation="c")
    assert response.text == "Write to [email] today."
    assert said(response.messages) == ["user: Who?", "assistant: Write to [email] today."]
    assert await kept(store) == said(response.messages)
    assert [entry.message for entry in await store.tail("c")] == list(response.messages)


@pytest.mark.rule("R-STREAM-3", "R-STREAM-5")
@pytest.mark.behaviour("B-ST-1")
@given(texts, cuts)
@settings(max_examples=60)
async def test_shown_is_returned_is_stored_however_an_answer_is_split(
    text: str, at: list[int]
) -> None:
    store = InMemory()
    model = Scripted(Say(text=split(text, at)), Say(text=text))
    agent = Agent(model, advisors=[Redact(), Memory(store)])
    turn = agent.stream("Who?", conversation="streamed")
    await read(turn)
    streamed = await turn.result()
    ran = await agent.run("Who?", conversation="run")
    assert streamed.text == ran.text
    for conversation, response in (("streamed", streamed), ("run", ran)):
        log = [entry.message for entry in await store.tail(conversation)]
        assert log == list(response.messages)
        assert "".join(message.text for message in log[1:]) == response.text


async def test_no_chunk_of_a_stream_holds_a_part_of_an_address() -> None:
    model = Scripted(Say(text=["Write to a", "nn@", "exam", "ple.org", " to", "day."]))
    events = await read(Agent(model, advisors=[Redact()]).stream("Who?"))
    chunks = [event.text for event in events if isinstance(event, TextChunk)]
    assert chunks == ["Write to ", "[email] ", "today."]


@pytest.mark.rule("R-ONION-12")
async def test_in_a_sub_agent_the_parent_is_told_what_is_shown() -> None:
    model = Scripted(f"Write to {ANN}.")
    parent = await by_parent(Agent(model, advisors=[Redact()]), f"Who is {BOB}?")
    assert sent(model) == [f"user: Who is {BOB}?"]
    assert said(parent.messages)[2] == "tool: Write to [email]."


async def test_a_hundred_turns_at_once_do_not_mix() -> None:
    model = Scripted(lambda request: f"{request.messages[0].text}@example.org", repeat=True)
    agent = Agent(model, advisors=[Redact(reversible=True)])
    answers = await asyncio.gather(*(agent.run(f"n{n}@x.org") for n in range(100)))
    assert [one.text for one in answers] == [f"n{n}@x.org@example.org" for n in range(100)]


# -- each place alone --------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-3")
@pytest.mark.parametrize("places", [(), *((one,) for one in PLACES), ("shown", "stored"), PLACES])
@ways
async def test_each_place_is_redacted_where_it_is_named_and_nowhere_else(
    places: tuple[Place, ...], way: Way
) -> None:
    agent, model, store, post = all_of(*(places or ("shown",)))
    if not places:
        agent = agent.with_(advisors=agent.advisors[1:])

    def at(place: Place, text: str) -> str:
        names = (ANN, BOB, CLEO, DAN)
        for one in names if place in places else ():
            text = text.replace(one, "[email]")
        return text

    response = await way(agent, f"I am {ANN}.", conversation="c")
    assert response.text == at("shown", f"So says {BOB}.")
    to = at("tools", CLEO)
    assert post.given == [(to, {"cc": [to], "n": 1})]
    result = at("results", f'{{"by":"{DAN}","n":5,"to":["{to}"]}}')
    assert sent(model, 1) == [
        at("model", f"user: I am {ANN}."),
        at("model", f"assistant: I ask {BOB}. +post"),
        at("model", f"tool: {result}"),
    ]
    asked = model.requests[1].messages[1].tool_calls[0].arguments
    assert asked == at("model", f'{{"to":"{CLEO}","more":{{"cc":["{CLEO}"],"n":1}}}}')
    log = [
        at("stored", f"user: I am {ANN}."),
        at("stored", f"assistant: I ask {BOB}. +post"),
        at("stored", f"tool: {result}"),
        at("stored", f"assistant: So says {BOB}."),
    ]
    assert await kept(store) == said(response.messages) == log
    stored = (await store.tail("c"))[1].message.tool_calls[0].arguments
    assert stored == at("stored", f'{{"to":"{CLEO}","more":{{"cc":["{CLEO}"],"n":1}}}}')
    await way(agent, "And?", conversation="c")
    assert sent(model) == [*(at("model", line) for line in log), "user: And?"]
    strictly(model)


async def test_the_events_of_a_call_show_what_the_model_wrote_and_what_it_is_told() -> None:
    agent, _, _, _ = all_of("shown", "tools", "results")
    events = await read(agent.stream("Go."))
    written = "".join(event.fragment for event in events if isinstance(event, ToolArguments))
    (started,) = (event for event in events if isinstance(event, ToolStarted))
    (finished,) = (event for event in events if isinstance(event, ToolFinished))
    assert CLEO in written
    assert started.arguments == {"to": CLEO, "more": {"cc": [CLEO], "n": 1}}
    assert finished.text == '{"by":"[email]","n":5,"to":["[email]"]}'


# -- reasoning, parts, JSON --------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-2")
async def test_shown_reasoning_is_redacted_and_goes_back_signed_as_it_came() -> None:
    store, post = InMemory(), Post()
    thought = Say(thinking=f"{BOB}?", signature="proof", calls=[call("post", to="x")])
    model = Scripted(thought, "Done.")
    agent = Agent(model, tools=[post.tool()], advisors=[Redact(where="shown"), Memory(store)])
    events = await read(agent.stream("Go.", conversation="c"))
    assert [e.text for e in events if isinstance(e, ThinkingChunk)] == ["[email]?"]
    signed = Thinking(f"{BOB}?", signature="proof", provider="scripted")
    assert model.requests[1].messages[1].parts[0] == signed
    assert (await store.tail("c"))[1].message.parts[0] == signed


async def test_stored_reasoning_that_is_changed_loses_its_proof_and_other_keeps_it() -> None:
    for thought, part in (
        (f"{BOB}?", Thinking("[email]?")),
        ("Hm.", Thinking("Hm.", signature="proof", provider="scripted")),
    ):
        model = Scripted(Say(thinking=thought, signature="proof", text="Done."))
        response = await Agent(model, advisors=[Redact()]).run("Go.")
        assert response.messages[1].parts[0] == part


async def test_a_value_across_two_parts_is_found_and_pictures_stay() -> None:
    model, picture = Scripted("Done."), Image(data=b"ann@example.org")
    agent = Agent(model, advisors=[Redact(where="model")])
    await agent.run([Text("I am ann@"), Text("example.org"), picture, Text("ann@"), Text("x.org.")])
    assert model.requests[0].messages[0].parts == (
        Text("I am "), Text("[email]"), picture, Text("[email]."),
    )  # fmt: skip


async def test_a_message_without_a_value_is_sent_as_the_same_object() -> None:
    agent, model, _, _ = all_of("model")
    await agent.run("Go.")
    assert model.requests[0].messages[0] is model.requests[1].messages[0]
    agent, model, _, _ = all_of("model")
    await agent.run(f"Ask {ANN}.")
    first = model.requests[0].messages[0]
    assert first.text == "Ask [email]."
    assert first is model.requests[1].messages[0], "changed once, so that it is encoded once"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ('{"a@b.cd": "a@b.cd", "n": 1.10}', '{"a@b.cd": "[email]", "n": 1.10}'),
        ('{"card": 4111111111111111}', '{"card": 4111111111111111}'),
        ('[1.10, "a\\u0040b.cd", "\\"a@b.cd\\""]', '[1.10, "[email]", "\\"[email]\\""]'),
        ('{"broken": "a@b.cd"', '{"broken": "[email]"'),
        ("plain a@b.cd", "plain [email]"),
    ],
)  # fmt: skip
async def test_of_a_result_that_is_json_the_strings_are_changed(result: str, told: str) -> None:
    @tool
    async def look() -> str:
        """Looks."""
        return result

    model = Scripted(call("look"), "Done.")
    await Agent(model, tools=[look], advisors=[Redact(where="results")]).run("Go.")
    assert sent(model)[-1] == f"tool: {told}"


async def test_instructions_and_the_descriptions_of_tools_are_not_touched() -> None:
    @tool
    async def look() -> str:
        """Asks ann@example.org."""
        return "x"

    model = Scripted("Done.")
    agent = Agent(
        model, instructions=f"You are {ANN}.", tools=[look], advisors=[Redact(where="model")]
    )
    await agent.run("Go.")
    assert model.requests[0].instructions == (f"You are {ANN}.",)
    assert ANN in model.requests[0].tools[0].description


# -- answers that no model gave ----------------------------------------------------------------


@pytest.mark.rule("R-TOOL-7", "R-STREAM-8")
@ways
async def test_a_direct_result_is_shown_redacted_and_the_log_keeps_its_shape(way: Way) -> None:
    store, post = InMemory(), Post()
    model = Scripted(call("post", to="x"))
    advisors = [Redact(where="shown"), Memory(store)]
    agent = Agent(model, tools=[post.tool(return_direct=True)], advisors=advisors)
    response = await way(agent, "Go.", conversation="c")
    assert response.text == '{"by":"[email]","n":5,"to":["x"]}'
    log = ["user: Go.", "assistant: +post", f'tool: {{"by":"{DAN}","n":5,"to":["x"]}}']
    assert await kept(store) == said(response.messages) == log


@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
@pytest.mark.parametrize("how", ["respond", "refuse"])
@ways
async def test_what_a_layer_answers_is_shown_redacted(hook: str, how: str, way: Way) -> None:
    async def answer(request: Any, _: Any) -> Any:
        return request.respond(ANN) if how == "respond" else request.refuse("no", answer=ANN)

    hooks: dict[str, Any] = {hook: answer}
    store = InMemory()
    agent = Agent(Scripted(), advisors=[Redact(), Memory(store), Layer("answers", **hooks)])
    response = await way(agent, "Go.", conversation="c")
    assert response.text == "[email]"
    assert ANN not in str(await kept(store)) + str(said(response.messages))


async def test_an_answer_that_is_cut_short_keeps_no_half_of_an_address() -> None:
    store = InMemory()
    model = Scripted(Say(text=["Write to ", "ann@exam"], error=ValueError("broken")))
    agent = Agent(model, advisors=[Redact(), Memory(store)])
    turn = agent.stream("Who?", conversation="c")
    await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.text == "Write to "
    assert said(turn.outcome.messages)[-1] == "assistant: Write to  …"
    assert (await kept(store))[-1] == "assistant: Write to  …"


# -- memory ------------------------------------------------------------------------------------


@pytest.mark.behaviour("B-ME-3")
@ways
async def test_a_transcript_that_is_sent_again_is_known_though_it_is_stored_redacted(
    way: Way,
) -> None:
    agent, model, store, _ = all_of("stored")
    agent = agent.with_(model=(model := Scripted("one", "two")))
    await way(agent, f"I am {ANN}.", conversation="c")
    again = [user(f"I am {ANN}."), assistant("one"), user("And?")]
    await way(agent, again, conversation="c")
    assert await kept(store) == [
        "user: I am [email].", "assistant: one", "user: And?", "assistant: two",
    ]  # fmt: skip
    assert sent(model) == ["user: I am [email].", "assistant: one", "user: And?"]


@ways
async def test_a_turn_that_goes_on_after_a_pause_is_redacted_as_any(way: Way) -> None:
    async def resumed(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(resumed=True))

    store, model = InMemory(), Scripted(f"Ask {ANN}.")
    advisors = [Layer("resumed", turn=resumed), Redact(where=PLACES), Memory(store)]
    response = await way(Agent(model, advisors=advisors), f"I am {BOB}.", conversation="c")
    assert response.text == "Ask [email]."
    assert await kept(store) == ["user: I am [email].", "assistant: Ask [email]."]
    assert sent(model) == ["user: I am [email]."]


async def test_a_function_that_fails_stops_the_turn_and_nothing_is_stored_in_clear(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def find(line: str) -> Iterable[tuple[int, int]]:
        raise ValueError("no model")

    store = InMemory()
    agent = Agent(Scripted(f"Ask {ANN}."), advisors=[Redact({"name": find}), Memory(store)])
    with caplog.at_level(logging.ERROR, "retinue"), pytest.raises(ValueError, match="no model"):
        await agent.run(f"I am {BOB}.", conversation="c")
    assert "@" not in str(await kept(store))
    assert "could not look through" in caplog.text


# -- where it stands ---------------------------------------------------------------------------


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize(
    ("advisors", "why"),
    [
        ([Memory(), Redact()], "what a layer between them answers is stored as it was asked"),
        (
            [Redact(where="model"), QuestionAnswer(lambda question: [Document(ANN)])],
            "what the inner one finds is sent as it stands",
        ),
    ],
)
def test_a_doubtful_order_is_warned_about_and_its_reverse_is_not(
    advisors: list[Any], why: str
) -> None:
    with pytest.warns(OnionWarning, match=why):
        Agent(Scripted(), advisors=advisors)
    assert Agent(Scripted(), advisors=advisors[::-1]).explain().warnings == ()


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize("place", ["shown", "stored"])
def test_one_that_puts_back_what_an_inner_one_takes_out_is_refused(place: Place) -> None:
    with pytest.raises(ConfigError, match="would put back what the inner one takes out"):
        Agent(Scripted(), advisors=[Redact(reversible=True), Redact(where=place)])
    Agent(Scripted(), advisors=[Redact(where=place), Redact(reversible=True)])


@pytest.mark.parametrize("where", ["log", (), ("shown", "log")])
def test_a_place_that_is_none_is_refused(where: Any) -> None:
    with pytest.raises(ConfigError, match="there are shown, stored, model, tools, results"):
        Redact(where=cast("Place", where))


def test_a_result_keeps_what_is_no_text() -> None:
    result = ToolResult("1", "x", (Text("plain"), Image(data=b"a@b.cd")), note={"a": "a@b.cd"})
    assert in_result(result, str) is result
