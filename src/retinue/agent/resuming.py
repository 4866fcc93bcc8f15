"""Turns that have begun before: they go on after a pause with answers, or after a crash from the
log alone (R-HITL), or are asked anew (R-MEM-8).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from retinue.agent.building import check_parts
from retinue.agent.entering import Entering
from retinue.agent.pause import answered, check_answers, recovered
from retinue.agent.run import Turn, conduct
from retinue.chains import Output, Settings, TurnRequest, TurnResponse
from retinue.chains.channel import Channel
from retinue.chains.log import INSTEAD, Keeper
from retinue.chains.snapshot import Snapshot
from retinue.errors import ConfigError, ConversationNotFound, PauseNotFound
from retinue.messages import Input, Message, as_messages, new_id
from retinue.tools import NOTHING, Answer, PendingCall


class Resumable(Entering):
    """What an agent can do with turns that have begun before."""

    async def pending(
        self, conversation: str, *, owner: str | None = None
    ) -> tuple[PendingCall, ...]:
        """The calls that a paused turn of a conversation waits for; empty if none is paused.

        Raises:
            ConfigError: the agent has no memory.
            ConversationNotFound: there is no such conversation for this owner.
        """
        paused = await self.paused(conversation, owner=owner)
        return () if paused is None else paused.pending

    async def paused(self, conversation: str, *, owner: str | None = None) -> Snapshot | None:
        """What the paused turn of a conversation goes on from, or None if none is paused.

        Raises:
            ConfigError: the agent has no memory.
            ConversationNotFound: there is no such conversation for this owner.
        """
        document = await self._keeper().paused(conversation, owner)
        if document is None:
            return None
        # A fork carries the pause of the conversation that it came from.
        return structs.replace(Snapshot.load(document), conversation=conversation)

    async def resume(
        self,
        paused: str | Snapshot,
        answers: Mapping[str, Answer] = NOTHING,
        *,
        owner: str | None = None,
        data: Any = None,
        context: Mapping[str, Any] = NOTHING,
        settings: Settings | None = None,
        output: Any = None,
    ) -> TurnResponse:
        """Goes on with a paused turn, in this process or another.

        A pause is used up once, when all its calls are answered and are about to run. Calls that
        the answers leave out stay pending: the turn pauses again, and has run nothing. What fails,
        cancels or refuses the turn before its calls run leaves the pause as it was.

        Args:
            paused: the conversation whose turn waits, or the snapshot of a turn without one.
            answers: answers by the ids of `pending`: Approve, Reject, Reply, Retry or Proceed.
            owner: whose conversation it is; by default as the snapshot says, if one is given.
            data, context, settings, output: as for `run`; none of them but the context is kept in
                a pause.

        Raises:
            ConfigError: an answer fits no call that waits; nothing was done.
            PauseNotFound: nothing waits there, or another process has gone on with it.
            ConversationNotFound: there is no such conversation, or turn, for this owner.
        """
        request = await self._resumed(paused, answers, owner, data, context, settings, output, None)
        return await conduct(self._loop, request, self._plan.limits)

    async def stream_resume(
        self,
        paused: str | Snapshot,
        answers: Mapping[str, Answer] = NOTHING,
        *,
        owner: str | None = None,
        data: Any = None,
        context: Mapping[str, Any] = NOTHING,
        settings: Settings | None = None,
        output: Any = None,
        final_only: bool = False,
        detached: bool = False,
    ) -> Turn:
        """`resume`, with the events as they come: `async for event in await stream_resume(...)`.

        Args and errors are those of `resume`; `final_only` and `detached` are as for `stream`.
        """
        request = await self._resumed(
            paused, answers, owner, data, context, settings, output, Channel()
        )
        request.scope.final_only = final_only
        return Turn(self._loop, request, self._plan.limits, detached=detached)

    async def recover(
        self, conversation: str, *, owner: str | None = None, data: Any = None
    ) -> TurnResponse | None:
        """Goes on with a turn that a crash has cut off, by its log alone.

        Rounds that are in the log are not repeated, and calls that have a result there are not run
        again. A call without one runs again only if its tool declares `retry`, with the same
        `ctx.idempotency_key`; of another the model is told that nobody knows whether it ran. A
        question or an external call is asked anew. State slots begin as in a new turn.

        Returns:
            how the turn ended, or None if the last turn of the conversation is finished.

        Raises:
            ConfigError: the agent has no memory, or the turn is paused: `resume` it.
            PauseNotFound: it was not cut off but still ran, or another process has gone on with it.
            ConversationNotFound: there is no such conversation for this owner.
        """
        request = await self._recovered(conversation, owner, data, None)
        return None if request is None else await conduct(self._loop, request, self._plan.limits)

    async def stream_recover(
        self,
        conversation: str,
        *,
        owner: str | None = None,
        data: Any = None,
        context: Mapping[str, Any] = NOTHING,
        settings: Settings | None = None,
        output: Any = None,
        detached: bool = False,
    ) -> Turn | None:
        """`recover`, with the events as they come; None if there is nothing to go on with.

        Args:
            conversation, owner, data: as for `recover`.
            context, settings, output: what the turn was begun with; the log does not hold them.
            detached: as for `stream`.
        """
        check_parts({"context": context, "settings": settings})
        request = await self._recovered(conversation, owner, data, Channel())
        if request is None:
            return None
        request = request.with_(
            context=context,
            settings=self._settings(settings),
            output=request.output if output is None else Output.of(output),
        )
        return Turn(self._loop, request, self._plan.limits, detached=detached)

    async def regenerate(
        self,
        conversation: str,
        *,
        turn: str | None = None,
        question: Input | None = None,
        fork: bool | str = False,
        owner: str | None = None,
        data: Any = None,
        state: Mapping[str, Any] = NOTHING,
        context: Mapping[str, Any] = NOTHING,
        settings: Settings | None = None,
        output: Any = None,
    ) -> TurnResponse:
        """Goes back to before a turn, and asks again: the same, or something else.

        In place, the old turn and all behind it stay in the log and are not sent any more, from the
        first answer on: where the new turn fails before that, the conversation is as it was. A
        pause in them is closed at once, as by any new message.

        Args:
            conversation: which one.
            turn: the id of the turn; the last one by default.
            question: what to ask instead; by default what was asked.
            fork: True, or the id of a new conversation, to leave this one as it is;
                `result.conversation` names the new one.
            owner: whose conversation it is.
            data, state, context, settings, output: as for `run`.

        Raises:
            ConfigError: the agent has no memory, there is no such turn, or a conversation `fork`.
            ConversationNotFound: there is no such conversation for this owner.
        """
        asked, place = await self._asked(conversation, turn, question, fork, owner)
        request = self._request(asked, place, owner, data, state, context, settings, output, None)
        return await conduct(self._loop, request, self._plan.limits)

    async def stream_regenerate(
        self,
        conversation: str,
        *,
        turn: str | None = None,
        question: Input | None = None,
        fork: bool | str = False,
        owner: str | None = None,
        data: Any = None,
        state: Mapping[str, Any] = NOTHING,
        context: Mapping[str, Any] = NOTHING,
        settings: Settings | None = None,
        output: Any = None,
        final_only: bool = False,
        detached: bool = False,
    ) -> Turn:
        """`regenerate`, with the events as they come.

        Args and errors are those of `regenerate`; `final_only` and `detached` are as for `stream`.
        """
        asked, place = await self._asked(conversation, turn, question, fork, owner)
        request = self._request(
            asked, place, owner, data, state, context, settings, output, Channel()
        )
        request.scope.final_only = final_only
        return Turn(self._loop, request, self._plan.limits, detached=detached)

    async def _asked(
        self,
        conversation: str,
        turn: str | None,
        question: Input | None,
        fork: bool | str,
        owner: str | None,
    ) -> tuple[Sequence[Message], str]:
        """What is to be asked in place of a turn, and in which conversation."""
        check_parts({"turn": turn, "fork": fork})
        given = () if question is None else as_messages(question)
        keeper = self._keeper()
        begun = await keeper.origin(conversation, owner, turn)
        # An edited message may come under its old id, which the log has.
        asked = [message.with_(id=new_id()) for message in given or begun.question]
        if fork:
            new = fork if isinstance(fork, str) else None
            return asked, await keeper.fork_before(conversation, owner, begun.turn, new)
        first = asked[0].with_(meta={**asked[0].meta, INSTEAD: begun.turn})
        return (first, *asked[1:]), conversation

    async def _recovered(
        self, conversation: str, owner: str | None, data: Any, channel: Channel | None
    ) -> TurnRequest | None:
        keeper = self._keeper()
        if await keeper.paused(conversation, owner) is not None:
            raise ConfigError(
                f"Conversation {conversation!r} is paused, not cut off; answer it with resume()."
            )
        found = await keeper.unfinished(conversation, owner)
        if found is None:
            return None
        plan, scope = self._plan, self._scope(channel)
        messages, scope.resumption = recovered(found.messages, plan.tools, plan.limits.rounds)
        scope.goes_on(found.turn, messages)
        scope.round = sum(message.role == "assistant" for message in messages)
        return self._continued(scope, messages, NOTHING).with_(
            conversation=conversation, owner=owner, data=data, upto=found.last
        )

    def _settings(self, given: Settings | None) -> Settings:
        own = self._plan.settings
        return own if given is None else given.over(own)

    def _keeper(self) -> Keeper:
        for advisor in self._plan.advisors:
            if isinstance(advisor, Keeper):
                return advisor
        raise ConfigError(
            f"The agent {self._plan.name!r} has no memory that could hold a paused turn; add"
            " Memory(...), or give resume() the snapshot of the result."
        )

    async def waiting(self, paused: str | Snapshot, owner: str | None) -> Snapshot:
        """What a turn that waits goes on from; see `resume`."""
        if isinstance(paused, Snapshot):
            if owner is not None and owner != paused.owner:
                raise ConversationNotFound("This paused turn is not of this owner.")
            return paused
        found = await self.paused(paused, owner=owner)
        if found is None:
            raise PauseNotFound(f"No turn of conversation {paused!r} waits for an answer.")
        return found

    async def _resumed(
        self,
        paused: str | Snapshot,
        answers: Mapping[str, Answer],
        owner: str | None,
        data: Any,
        context: Mapping[str, Any],
        settings: Settings | None,
        output: Any,
        channel: Channel | None,
    ) -> TurnRequest:
        check_parts({"context": context, "settings": settings})
        snapshot = await self.waiting(paused, owner)
        check_answers(snapshot, answers, self._plan.tools)
        plan = self._plan
        request = self.continued(self._scope(channel), answered(snapshot, answers), context)
        return request.with_(
            owner=snapshot.owner if owner is None else owner,
            data=data,
            settings=self._settings(settings),
            output=plan.output if output is None else Output.of(output),
        )
