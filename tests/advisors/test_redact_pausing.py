"""Turns that pause while values are taken out of what is stored, or of what the model is sent."""

from typing import Any

import pytest

from retinue import Agent, Approve, Reply, tool
from retinue.advisors import Memory, Redact
from retinue.models.scripted import Scripted, call
from retinue.stores import Store
from retinue.tools import ask_user
from tests.advisors.talking import kept, said, sent, strictly

ANN, BOB, CLEO = "ann@example.org", "bob@example.org", "cleo@example.org"


def clerk(store: Store, redact: Redact, given: list[str], *script: Any) -> tuple[Agent, Scripted]:
    @tool
    async def find(name: str) -> str:
        """Finds an address."""
        return CLEO

    @tool(sensitive=True)
    async def post(to: str) -> str:
        """Posts."""
        given.append(to)
        return f"posted to {to}"

    model = Scripted(*script)
    agent = Agent(
        model,
        tools=[find, post, ask_user()],
        gate="sensitive",
        advisors=[redact, Memory(store)],
    )
    return agent, model


@pytest.mark.rule("R-HITL-2", "R-MEM-3")
async def test_what_is_stored_redacted_is_so_in_the_pause_but_for_the_calls(store: Store) -> None:
    given: list[str] = []
    batch = [call("post", to=BOB), call("ask_user", question="Sure?"), call("find", name="Cleo")]
    agent, _ = clerk(store, Redact(), given, call("find", name="Cleo"), batch)
    paused = await agent.run(f"I am {ANN}.", conversation="c")
    held = await store.held("c")
    assert held is not None
    assert [name.encode() in held.document for name in (ANN, BOB, CLEO)] == [False, True, False]
    post, asked = paused.pending
    assert post.arguments == {"to": BOB}
    agent, model = clerk(store, Redact(), given, "Done.", "yes")
    answers = {post.id: Approve(), asked.id: Reply(f"Ask {ANN}.")}
    result = await agent.resume("c", answers)
    assert given == [BOB]
    strictly(model)
    log = " ".join(await kept(store))
    assert not any(name in log for name in (ANN, BOB, CLEO))
    assert sorted(said(result.messages)) == sorted(await kept(store))


@pytest.mark.rule("R-HITL-2")
async def test_placeholders_stand_for_the_same_values_after_a_pause(store: Store) -> None:
    given: list[str] = []
    agent, model = clerk(store, Redact(reversible=True), given, call("post", to="<EMAIL_1>"))
    paused = await agent.run(f"Post to {ANN}.", conversation="c")
    assert sent(model)[1:] == ["user: Post to <EMAIL_1>."]
    agent, model = clerk(store, Redact(reversible=True), given, "<EMAIL_1> has it.")
    again = await agent.resume("c", {paused.pending[0].id: Approve()})
    assert [one.arguments for one in (*paused.pending, *again.pending)] == [
        {"to": "<EMAIL_1>"}, {"to": ANN},
    ]  # fmt: skip
    agent, model = clerk(store, Redact(reversible=True), given, "<EMAIL_1> has it.")
    result = await agent.resume("c", {again.pending[0].id: Approve()})
    assert given == [ANN]
    assert sent(model)[1:] == [
        "user: Post to <EMAIL_1>.", "assistant: +post", "tool: posted to <EMAIL_1>",
    ]  # fmt: skip
    assert result.text == f"{ANN} has it."
    assert (await kept(store))[0] == f"user: Post to {ANN}."
    calls = [one for entry in await store.tail("c") for one in entry.message.tool_calls]
    assert [one.arguments for one in calls] == [f'{{"to":"{ANN}"}}']
