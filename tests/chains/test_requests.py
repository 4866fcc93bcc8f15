"""Requests and responses as layers use them: values that change by copy."""

from typing import Any

import pytest

from retinue import Agent, Layer, TurnRequest, assistant, tool
from retinue.errors import ConfigError
from retinue.models.scripted import Scripted, call


async def capture(hook: str, *, calls: bool = False) -> Any:
    """A request as the layer of a real turn sees it."""
    seen: list[Any] = []

    async def keep(request: Any, call_next: Any) -> Any:
        seen.append(request)
        return await call_next(request)

    @tool
    def look(at: str) -> str:
        """Looks."""
        return at

    model = Scripted(call("look", at="it"), "done") if calls else Scripted("done")
    hooks: dict[str, Any] = {hook: keep}
    agent = Agent(model, tools=[look], advisors=[Layer("keep", **hooks)])
    await agent.run("hello", conversation="c-1", owner="ada", data={"k": 1}, context={"x": 1})
    return seen[0]


@pytest.mark.rule("R-ONION-6")
@pytest.mark.parametrize("hook", ["turn", "round", "chat", "tool"])
async def test_a_request_cannot_be_changed_in_place(hook: str) -> None:
    request = await capture(hook, calls=True)
    with pytest.raises(AttributeError):
        request.context = {}
    with pytest.raises(AttributeError):
        request.no_such_field = 1


@pytest.mark.rule("R-ONION-6")
@pytest.mark.parametrize("hook", ["turn", "round", "chat", "tool"])
async def test_a_copy_keeps_every_field_that_it_does_not_change(hook: str) -> None:
    request = await capture(hook, calls=True)
    copy = request.with_context(y=2)
    assert copy.context == {"x": 1, "y": 2}
    assert request.context == {"x": 1}
    for name in request.__struct_fields__:
        if name != "context":
            assert getattr(copy, name) is getattr(request, name)


@pytest.mark.rule("R-ONION-6")
async def test_responses_change_by_copy_too() -> None:
    result: Any = await Agent(Scripted("hi")).run("?", context={"x": 1})
    changed = result.with_(reason="because")
    assert (changed.reason, result.reason) == ("because", None)
    assert changed.context == {"x": 1}
    with pytest.raises(AttributeError):
        result.reason = "no"


@pytest.mark.parametrize("hook", ["round", "chat", "tool"])
async def test_inner_requests_know_the_turn_they_belong_to(hook: str) -> None:
    request = await capture(hook, calls=True)
    assert isinstance(request.turn, TurnRequest)
    assert (request.conversation, request.owner, request.data) == ("c-1", "ada", {"k": 1})
    assert request.round == 1
    assert request.turn_id == request.turn.turn_id != ""


async def test_a_misspelled_field_of_a_copy_is_refused() -> None:
    request = await capture("chat")
    with pytest.raises(TypeError, match="mesages"):
        request.with_(mesages=())


@pytest.mark.rule("R-ONION-12")
async def test_the_scratch_is_one_for_each_layer_and_turn() -> None:
    class Two:
        async def turn(self, request: Any, call_next: Any) -> Any:
            assert request.local(self) == {}
            assert request.local("somebody else") == {}
            request.local(self)["count"] = 1
            return await call_next(request.with_context(y=2))

        async def chat(self, request: Any, call_next: Any) -> Any:
            request.local(self)["count"] += 1
            seen.append(request.local(self)["count"])
            return await call_next(request)

    seen: list[int] = []
    agent = Agent(Scripted("a", "b"), advisors=[Two()])
    await agent.run("?")
    await agent.run("?")
    assert seen == [2, 2]


@pytest.mark.rule("R-LOOP-5")
async def test_asking_again_before_there_is_an_answer_says_what_is_wrong() -> None:
    request = await capture("turn")
    fresh = request.with_(scope=type(request.scope)(request.scope.consult))
    with pytest.raises(ConfigError, match=r"again\(\) comes after call_next\(\)"):
        fresh.again("try harder")


@pytest.mark.rule("R-LOOP-5")
async def test_feedback_that_is_empty_is_refused() -> None:
    request = await capture("turn")
    with pytest.raises(ConfigError, match="empty"):
        request.again("  ")


async def test_an_answer_may_be_a_text_or_a_whole_message() -> None:
    request = await capture("turn")
    message = assistant("whole")
    assert request.respond("text").text == "text"
    assert request.respond(message).message.parts == message.parts
    assert request.respond("text").messages[:-1] == request.messages
    assert request.refuse("why").message is None
    assert request.refuse("why", answer="no").text == "no"
