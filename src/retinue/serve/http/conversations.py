"""Operations on conversations: list, read, fork, roll back, delete."""

from typing import Final

from starlette.responses import Response

from retinue.serve.gateway import check_conversation
from retinue.serve.http.bodies import (
    ConversationList,
    ConversationTree,
    ConversationView,
    ForkBody,
    ForkResult,
    ListQuery,
    MessageList,
    MessagesQuery,
    RollbackBody,
)
from retinue.serve.http.operations import Answer, Call, Operation, json_response


async def recent(call: Call) -> Answer:
    """Lists the caller's conversations."""
    found = await call.gateway.conversations.recent(call.caller.owner, call.query.limit)
    return json_response(ConversationList(found))


async def tree(call: Call) -> Answer:
    """Lists them with their forks."""
    return json_response(ConversationTree(await call.gateway.conversations.tree(call.caller.owner)))


async def view(call: Call) -> Answer:
    """Shows one."""
    check_conversation(call.id)
    kept, owner = call.gateway.conversations, call.caller.owner
    points = [*await kept.points(call.id, owner)]
    pending = await kept.pending(call.id, owner)
    running = call.gateway.running(call.caller, call.id)
    return json_response(ConversationView(call.id, points, pending, running))


async def messages(call: Call) -> Answer:
    """Gives a page of the messages of one."""
    check_conversation(call.id)
    query: MessagesQuery = call.query
    found = await call.gateway.conversations.entries(
        call.id, call.caller.owner, before=query.before, limit=query.limit
    )
    more = found[0].position if len(found) == query.limit else None
    return json_response(MessageList([*found], more))


async def fork(call: Call) -> Answer:
    """Makes a fork of one."""
    check_conversation(call.id)
    body: ForkBody = call.body
    new = await call.gateway.conversations.fork(call.id, call.caller.owner, new=body.id, at=body.at)
    return json_response(ForkResult(new), 201)


async def rollback(call: Call) -> Answer:
    """Takes one back to the end of a turn."""
    check_conversation(call.id)
    await call.gateway.conversations.rollback(call.id, call.caller.owner, call.body.to)
    return Response(status_code=204)


async def delete(call: Call) -> Answer:
    """Removes one."""
    check_conversation(call.id)
    await call.gateway.conversations.delete(call.id, call.caller.owner)
    return Response(status_code=204)


OPERATIONS: Final = (
    Operation(
        name="conversations",
        method="GET",
        path="/v1/conversations",
        scope="conversations",
        summary="Lists conversations, the one written last first.",
        handler=recent,
        query=ListQuery,
        gives=ConversationList,
    ),
    Operation(
        name="tree",
        method="GET",
        path="/v1/tree",
        scope="conversations",
        summary="Lists all conversations, each with its forks.",
        handler=tree,
        gives=ConversationTree,
    ),
    Operation(
        name="conversation",
        method="GET",
        path="/v1/conversations/{id}",
        scope="conversations",
        summary="Shows the turns of a conversation, and what a paused one waits for.",
        handler=view,
        gives=ConversationView,
        refuses=("invalid", "not_found"),
    ),
    Operation(
        name="messages",
        method="GET",
        path="/v1/conversations/{id}/messages",
        scope="conversations",
        summary="Gives the last messages of a conversation, or those before a position.",
        handler=messages,
        query=MessagesQuery,
        gives=MessageList,
        refuses=("invalid", "not_found"),
    ),
    Operation(
        name="fork",
        method="POST",
        path="/v1/conversations/{id}/fork",
        scope="conversations",
        summary="Makes a conversation that goes its own way from a turn on.",
        handler=fork,
        body=ForkBody,
        gives=ForkResult,
        status=201,
        refuses=("not_found", "conflict"),
    ),
    Operation(
        name="rollback",
        method="POST",
        path="/v1/conversations/{id}/rollback",
        scope="conversations",
        summary="Removes all that came after a turn.",
        handler=rollback,
        body=RollbackBody,
        status=204,
        refuses=("not_found", "conflict"),
    ),
    Operation(
        name="delete",
        method="DELETE",
        path="/v1/conversations/{id}",
        scope="conversations",
        summary="Removes a conversation for good.",
        handler=delete,
        status=204,
        refuses=("invalid", "not_found", "conflict"),
    ),
)
