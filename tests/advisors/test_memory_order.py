"""What the log holds does not depend on where the memory stands among other layers."""

from collections.abc import Sequence
from typing import Any

import pytest

from retinue import Agent, Layer, system, tool, user
from retinue.advisors import Memory, ReReading, UsageCollector
from retinue.messages import Delta, Text, TextDelta
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory, Store
from tests.advisors.talking import WAYS, Way, by_parent, kept, layer, said, sent, strictly

ways = pytest.mark.parametrize("way", WAYS)
places = pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


def placed(layer: object, memory: Memory, outside: bool) -> Sequence[object]:
    return [layer, memory] if outside else [memory, layer]


@pytest.mark.rule("R-MEM-3")
@places
@ways
async def test_a_question_read_twice_is_stored_once(store: Store, way: Way, outside: bool) -> None:
    model = Scripted(call("search"), "one", "two")
    agent = Agent(model, tools=[search], advisors=placed(ReReading(), Memory(store), outside))
    await way(agent, "first?", conversation="c")
    await way(agent, "second?", conversation="c")
    assert sent(model, 1)[0] == "user: first?\nRead the question again: first?"
    assert sent(model)[0] == "user: first?", "questions of the past are sent as they were asked"
    assert sent(model)[-1] == "user: second?\nRead the question again: second?"
    assert await kept(store) == [
        "user: first?", "assistant: +search", "tool: found x", "assistant: one",
        "user: second?", "assistant: two",
    ]  # fmt: skip


@pytest.mark.rule("R-MEM-3")
@places
@ways
async def test_context_for_the_model_alone_is_not_stored(
    store: Store, way: Way, outside: bool
) -> None:
    async def add(request: Any, call_next: Any) -> Any:
        context = user("context").with_(origin="summary")
        return await call_next(request.with_(messages=(context, *request.messages)))

    model = Scripted("one", "two")
    agent = Agent(model, advisors=placed(Layer("context", chat=add), Memory(store), outside))
    await way(agent, "first?", conversation="c")
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: context", "user: first?", "assistant: one", "user: second?"]
    assert await kept(store) == [*sent(model)[1:], "assistant: two"]


@pytest.mark.rule("R-STREAM-3")
@places
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
@ways
async def test_an_answer_that_a_layer_rewrites_is_stored_as_it_was_returned(
    store: Store, way: Way, hook: str, outside: bool
) -> None:
    async def shout(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        assert response.message is not None
        message = response.message.with_text(response.message.text.upper())
        if hook != "round":
            return response.with_(message=message)
        messages = (*response.messages[:-1], message)
        return response.with_(message=message, messages=messages)

    model = Scripted("one", "two")
    agent = Agent(model, advisors=placed(layer("shout", hook, shout), Memory(store), outside))
    assert (await way(agent, "first?", conversation="c")).text == "ONE"
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: first?", "assistant: ONE", "user: second?"]
    assert await kept(store) == [*sent(model), "assistant: TWO"]


@pytest.mark.rule("R-STREAM-3", "R-MEM-3")
@places
@pytest.mark.parametrize("hook", ["turn", "chat"])
@ways
async def test_an_answer_that_a_layer_puts_in_place_of_the_models_is_the_only_one_sent(
    store: Store, way: Way, hook: str, outside: bool
) -> None:
    async def instead(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return request.respond("mine")

    model = Scripted("one", "two")
    onion = placed(layer("instead", hook, instead), Memory(store), outside)
    agent = Agent(model, advisors=onion)
    assert (await way(agent, "first?", conversation="c")).text == "mine"
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: first?", "assistant: mine", "user: second?"]
    strictly(model)


@pytest.mark.rule("R-ONION-1", "R-ONION-7")
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
@ways
async def test_an_answer_without_the_model_is_stored_where_it_is_inside(
    store: Store, way: Way, hook: str
) -> None:
    async def known(request: Any, call_next: Any) -> Any:
        asked = request.messages[-1].text == "first?"
        return request.respond("known") if asked else await call_next(request)

    model = Scripted("two")
    agent = Agent(model, advisors=[Memory(store), layer("cache", hook, known)])
    first = await way(agent, "first?", conversation="c")
    assert (first.text, first.blocked_by) == ("known", "cache")
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: first?", "assistant: known", "user: second?"]
    assert len(model.requests) == 1


class Upper:
    """Changes what the model says."""

    def feed(self, delta: Delta) -> tuple[Delta]:
        return (TextDelta(delta.text.upper()) if isinstance(delta, TextDelta) else delta,)

    def flush(self) -> tuple[()]:
        return ()


class Shown(Upper):
    """Changes what is shown of it."""

    delivery_only = True


@pytest.mark.rule("R-STREAM-3")
@places
@pytest.mark.parametrize(("kind", "logged"), [(Upper, "ONE"), (Shown, "one")])
@ways
async def test_the_log_keeps_what_the_model_said_where_only_the_delivery_changes(
    store: Store, way: Way, kind: type[Upper], logged: str, outside: bool
) -> None:
    layer = Layer("upper", stream=lambda _: kind())
    model = Scripted("one", "two")
    agent = Agent(model, advisors=placed(layer, Memory(store), outside))
    first = await way(agent, "first?", conversation="c")
    assert first.text == "ONE"
    assert said(first.messages) == ["user: first?", f"assistant: {logged}"]
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: first?", f"assistant: {logged}", "user: second?"]


@pytest.mark.rule("R-STREAM-3")
@places
@ways
async def test_a_delivery_that_changes_and_a_layer_that_rewrites_agree_on_the_layers_word(
    store: Store, way: Way, outside: bool
) -> None:
    async def sign(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        assert response.message is not None
        return response.with_(message=response.message.with_text(response.text + " signed"))

    layer = Layer("sign", turn=sign, stream=lambda _: Shown())
    model = Scripted("one", "two")
    agent = Agent(model, advisors=placed(layer, Memory(store), outside))
    assert (await way(agent, "first?", conversation="c")).text == "ONE signed"
    await way(agent, "second?", conversation="c")
    assert sent(model)[1] == "assistant: ONE signed"


@pytest.mark.rule("R-LOOP-6")
@places
async def test_what_a_round_layer_adds_is_stored(store: Store, outside: bool) -> None:
    async def remind(request: Any, call_next: Any) -> Any:
        if request.round == 2:
            request = request.with_(messages=(*request.messages, user("remember the rule")))
        return await call_next(request)

    model = Scripted(call("search"), "one", "two")
    agent = Agent(
        model,
        tools=[search],
        advisors=placed(Layer("remind", round=remind), Memory(store), outside),
    )
    await agent.run("first?", conversation="c")
    await agent.run("second?", conversation="c")
    assert sent(model) == [
        "user: first?", "assistant: +search", "tool: found x", "user: remember the rule",
        "assistant: one", "user: second?",
    ]  # fmt: skip


@places
async def test_a_question_that_a_turn_layer_cleans_up_is_stored_clean(
    store: Store, outside: bool
) -> None:
    async def clean(request: Any, call_next: Any) -> Any:
        *before, last = request.messages
        cleaned = last.with_(parts=(Text(last.text.replace("4111-1111", "****")),))
        return await call_next(request.with_(messages=(*before, cleaned)))

    model = Scripted("one", "two")
    agent = Agent(model, advisors=placed(Layer("clean", turn=clean), Memory(store), outside))
    await agent.run("my card 4111-1111", conversation="c")
    await agent.run("second?", conversation="c")
    assert sent(model) == ["user: my card ****", "assistant: one", "user: second?"]
    assert await kept(store) == [*sent(model), "assistant: two"]


# -- re-entry --------------------------------------------------------------------------------------


def insisting(name: str, wrong: str) -> Layer:
    """Asks again for as long as the answer holds a word."""

    async def turn(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        while response.status == "completed" and wrong in response.text:
            request = request.again(f"not {wrong}")
            response = await call_next(request)
        return response

    return Layer(name, turn=turn)


@pytest.mark.rule("R-LOOP-5", "R-MEM-3")
@pytest.mark.behaviour("B-ON-3")
@places
@ways
async def test_an_answer_that_was_given_up_is_in_the_log_and_not_sent_later(
    store: Store, way: Way, outside: bool
) -> None:
    model = Scripted(call("search"), "bad 1", "bad 2", "good", "two")
    layer = insisting("insist", "bad")
    agent = Agent(model, tools=[search], advisors=placed(layer, Memory(store), outside))
    first = await way(agent, "first?", conversation="c")
    assert first.text == "good"
    assert sent(model, 3) == said(first.messages[:-1]) == [
        "user: first?", "assistant: +search", "tool: found x", "assistant: bad 1",
        "user: not bad", "assistant: bad 2", "user: not bad",
    ]  # fmt: skip
    await way(agent, "second?", conversation="c")
    assert sent(model) == [
        "user: first?", "assistant: +search", "tool: found x", "assistant: good", "user: second?",
    ]  # fmt: skip
    assert await kept(store) == [
        "user: first?", "assistant: +search", "tool: found x",
        "(superseded) assistant: bad 1", "(superseded) user: not bad",
        "(superseded) assistant: bad 2", "(superseded) user: not bad", "assistant: good",
        "user: second?", "assistant: two",
    ]  # fmt: skip
    strictly(model)


@pytest.mark.rule("R-LOOP-5", "R-MEM-3")
@pytest.mark.parametrize("where", ["both outside", "round it", "both inside"])
@ways
async def test_two_layers_that_ask_again_leave_one_question_and_one_answer(
    store: Store, way: Way, where: str
) -> None:
    outer, inner, memory = insisting("a", "bad"), insisting("b", "ugly"), Memory(store)
    onion = {
        "both outside": [outer, inner, memory],
        "round it": [outer, memory, inner],
        "both inside": [memory, outer, inner],
    }[where]
    model = Scripted("zero", "ugly", "bad", "ugly", "good", "two")
    agent = Agent(model, advisors=onion)
    await way(agent, "before?", conversation="c")
    assert (await way(agent, "first?", conversation="c")).text == "good"
    for number in range(1, 5):
        assert sent(model, number)[:3] == ["user: before?", "assistant: zero", "user: first?"]
        assert sent(model, number).count("user: first?") == 1
    await way(agent, "second?", conversation="c")
    assert sent(model) == [
        "user: before?", "assistant: zero", "user: first?", "assistant: good", "user: second?",
    ]  # fmt: skip
    log = await kept(store)
    assert sum(line.startswith("(superseded)") for line in log) == 6
    assert len(log) == 12


@pytest.mark.rule("R-ONION-3", "R-MEM-3")
@places
@ways
async def test_a_turn_that_is_simply_run_twice_leaves_the_answer_that_was_returned(
    store: Store, way: Way, outside: bool
) -> None:
    async def twice(request: Any, call_next: Any) -> Any:
        first = await call_next(request)
        second = await call_next(request)
        return first if "first" in request.messages[-1].text else second

    model = Scripted("a", call("search"), "b", "c", "d")
    layer = Layer("twice", turn=twice)
    agent = Agent(model, tools=[search], advisors=placed(layer, Memory(store), outside))
    assert (await way(agent, "first?", conversation="c")).text == "a"
    assert (await way(agent, "second?", conversation="c")).text == "d"
    strictly(model)
    assert sent(model) == ["user: first?", "assistant: a", "user: second?"]


@pytest.mark.rule("R-LOOP-5")
async def test_asking_again_works_the_same_without_a_memory() -> None:
    model = Scripted("bad", "good")
    response = await Agent(model, advisors=[insisting("a", "bad")]).run("first?")
    assert sent(model) == ["user: first?", "assistant: bad", "user: not bad"]
    assert response.text == "good"


# -- sub-agents ------------------------------------------------------------------------------------


@pytest.mark.rule("R-TOOL-12")
async def test_a_sub_agent_neither_reads_nor_writes_the_conversation_of_its_parent(
    store: Store,
) -> None:
    memory = Memory(store)
    child = Scripted("child one", "child two")
    helper = Agent(child, advisors=[memory], name="helper")
    parent = Agent(
        Scripted(call("helper", task="do it"), "done", call("helper", task="more"), "done"),
        tools=[helper.as_tool()],
        advisors=[memory],
    )
    await parent.run("first?", conversation="c")
    await parent.run("second?", conversation="c")
    assert sent(child) == ["user: more"]
    assert await kept(store) == [
        "user: first?", "assistant: +helper", "tool: child one", "assistant: done",
        "user: second?", "assistant: +helper", "tool: child two", "assistant: done",
    ]  # fmt: skip


async def test_a_memory_in_a_sub_agent_is_no_hindrance() -> None:
    store = InMemory()
    agent = Agent(Scripted("helped"), advisors=[Memory(store), UsageCollector()])
    response = await by_parent(agent, "task")
    assert response.text == "done"
    assert await store.conversations() == []


async def test_instructions_of_a_turn_are_not_stored(store: Store) -> None:
    async def instruct(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(instructions=(*request.instructions, "Today only.")))

    model = Scripted("one", "two")
    layer = Layer("instruct", turn=instruct)
    agent = Agent(model, instructions="Always.", advisors=[layer, Memory(store)])
    await agent.run([system("From the user."), user("first?")], conversation="c")
    assert sent(model)[:3] == [
        "instructions: Always.", "instructions: Today only.", "system: From the user.",
    ]  # fmt: skip
    assert await kept(store) == ["system: From the user.", "user: first?", "assistant: one"]
