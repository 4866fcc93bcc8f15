"""AG-UI: runs of front ends that speak this protocol, version 1.0.

A thread is a conversation of the agent, where it keeps some: then only what is new of a thread's
messages is asked, and pauses are interrupts that the next run resumes. Where the agent keeps none,
the client's messages are the conversation, instructions of its own included.

As the protocol has it, a thread that waits takes nothing but answers, to all interrupts at once. A
call of a front end's own tool is none: its result is a message, and another message of the user's
gives it up.
"""

from typing import Any, Final

from retinue.serve.agui_bodies import (
    AguiBody,
    answers_of,
    asked_now,
    context_of,
    messages_of,
    tools_of,
)
from retinue.serve.agui_frames import Frames
from retinue.serve.cards import AgentCard
from retinue.serve.faults import Refused
from retinue.serve.http.operations import Answer, Call, Operation
from retinue.serve.http.sse import EventStream
from retinue.serve.jobs import Job


async def run_only(call: Call) -> Answer:
    """Runs the only agent."""
    return await _run(call, call.gateway.agent(None))


async def run(call: Call) -> Answer:
    """Runs the agent of the path."""
    return await _run(call, call.gateway.agent(call.id))


async def _run(call: Call, card: AgentCard) -> Answer:
    body: AguiBody = call.body
    reader = await call.start(await _job(call, card, body))
    return EventStream(reader, Frames(reader.turn, body))


async def _job(call: Call, card: AgentCard, body: AguiBody) -> Job:
    common: dict[str, Any] = {"agent": card.name, "context": context_of(body)}
    if not card.keeps:
        answers_of(body, ())
        return Job(messages=messages_of(body.messages), tools=tools_of(body), **common)
    common["conversation"] = body.thread_id
    pending = await call.gateway.conversations.pending(body.thread_id, call.caller.owner)
    answers = answers_of(body, pending)
    asked = asked_now(body.messages)
    if not answers:
        if not asked:
            raise Refused("invalid", "The last message is none of the user's, and nothing waits.")
        return Job(messages=messages_of(asked), tools=tools_of(body), **common)
    if 0 < len(asked) < len(body.messages):
        raise Refused(
            "invalid", f"Send the message {asked[0].id[:80]!r} in the run after the answers."
        )
    return Job(kind="resume", answers=answers, **common)  # the pause has kept the tools


OPERATIONS: Final = (
    Operation(
        name="agui",
        method="POST",
        path="/v1/ag-ui",
        scope="turns",
        summary="Runs the only agent in the form of AG-UI.",
        handler=run_only,
        body=AguiBody,
        streams=True,
        foreign=True,
        refuses=("not_found", "conflict"),
    ),
    Operation(
        name="agui_agent",
        method="POST",
        path="/v1/ag-ui/{id}",
        scope="turns",
        summary="Runs an agent in the form of AG-UI.",
        handler=run,
        body=AguiBody,
        streams=True,
        foreign=True,
        refuses=("not_found", "conflict"),
    ),
)
