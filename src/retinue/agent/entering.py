"""How turns begin: the first request of a turn, whether it is new or goes on."""

from collections.abc import Mapping, Sequence
from typing import Any

from retinue.agent.building import check_parts
from retinue.agent.loop import Loop
from retinue.agent.pause import restore, resumption_of
from retinue.agent.plan import Plan
from retinue.chains import Output, Scope, Settings, TurnRequest
from retinue.chains.channel import Channel
from retinue.chains.snapshot import Snapshot
from retinue.chains.state import initial
from retinue.messages import Input, Message, as_messages
from retinue.tools import NOTHING


class Entering:
    """The beginnings of an agent's turns."""

    _plan: Plan
    _loop: Loop

    def _scope(self, channel: Channel | None) -> Scope:
        plan = self._plan
        scope = Scope(self._loop.consult, channel, plan.limits.tokens)
        scope.agent, scope.model = plan.name, plan.model
        return scope

    def _request(
        self,
        question: Input,
        conversation: str | None,
        owner: str | None,
        data: Any,
        state: Mapping[str, Any],
        context: Mapping[str, Any],
        settings: Settings | None,
        output: Any,
        channel: Channel | None,
    ) -> TurnRequest:
        """A new turn.

        Raises:
            ConfigError: the input is empty or of no known kind.
        """
        plan = self._plan
        messages = as_messages(question)
        check_parts({"state": state, "context": context, "settings": settings})
        return TurnRequest(
            scope=self._scope(channel),
            state=initial(plan.slots.values(), state) if plan.slots or state else state,
            context=context,
            messages=messages,
            conversation=conversation,
            owner=owner,
            data=data,
            tools=plan.tools,
            settings=plan.settings if settings is None else settings.over(plan.settings),
            output=plan.output if output is None else Output.of(output),
        )

    def _continued(
        self, scope: Scope, messages: Sequence[Message], state: Mapping[str, Any]
    ) -> TurnRequest:
        """A turn that has begun elsewhere, and has these messages."""
        plan = self._plan
        scope.log.untouched = True
        return TurnRequest(
            scope=scope,
            state=initial(plan.slots.values(), state),
            messages=tuple(messages),
            tools=plan.tools,
            settings=plan.settings,
            output=plan.output,
            resumed=True,
        )

    def continued(
        self, scope: Scope, snapshot: Snapshot, context: Mapping[str, Any] = NOTHING
    ) -> TurnRequest:
        """A turn that goes on from a snapshot."""
        restore(scope, snapshot)
        scope.resumption = resumption_of(snapshot)
        request = self._continued(scope, snapshot.messages, snapshot.state)
        return request.with_(
            conversation=snapshot.conversation,
            owner=snapshot.owner,
            context={**snapshot.context, **context},
            reentry=snapshot.reentry,
            pause=snapshot.id,
        )
