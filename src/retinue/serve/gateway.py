"""The gateway: who may run what, and who reads it. Every door (HTTP, gRPC) goes through it."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import structs

from retinue.chains.events import Event
from retinue.errors import ConfigError
from retinue.messages import File, Image, Part, ToolResult
from retinue.serve.access import Access, Anyone, Caller, Scope
from retinue.serve.bounds import Bounds, Rates
from retinue.serve.cards import AgentCard, unknown_agent
from retinue.serve.clienttools import RESERVED
from retinue.serve.conversations import Conversations
from retinue.serve.dispatch import Dispatcher, Load
from retinue.serve.faults import Refused, record
from retinue.serve.jobs import Job
from retinue.serve.keeping import Keeping, Kept, Reader, Watch
from retinue.serve.turns import Turns
from retinue.stores import Store

_ID: Final = re.compile(r"[A-Za-z0-9._~:@-]{1,200}")
_REQUEST_ID: Final = 200


class Gateway:
    """One gateway: a dispatcher, its turns, and those who may use them.

    Args:
        dispatcher: who runs the turns.
        access: who may come in; by default anybody, as one owner.
        stores: where the conversations are that agents keep.
        bounds: what requests and turns may take up.
        keeping: how much is kept of turns.

    Raises:
        ConfigError: one of them is something else.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        access: Access | None = None,
        stores: Sequence[Store] = (),
        bounds: Bounds | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        _check_kinds(access, bounds, keeping)
        self.bounds = bounds or Bounds()
        self.conversations = Conversations(stores)
        self._dispatcher = dispatcher
        self._access: Access = access or Anyone()
        self._rates = None
        if self.bounds.rate is not None:
            self._rates = Rates(self.bounds.rate, self.bounds.burst)
        self._watches: list[Watch] = []
        self._turns = Turns(
            dispatcher, keeping=keeping, log=self.conversations.log, watch=self._told
        )
        self._draining = False

    @property
    def ready(self) -> bool:
        """Whether it takes new turns: it is not shutting down, and somebody runs them."""
        return not self._draining and self._dispatcher.load().capacity != 0

    def watch(self, watch: Watch) -> None:
        """Lets somebody hear every event of every turn from now on; what it raises is logged."""
        self._watches.append(watch)

    def admit(self, credential: str | None, scope: Scope) -> Caller:
        """Lets a request in.

        Args:
            credential: the key or token of the request, or None.
            scope: what it is about to do.

        Raises:
            Refused: `unauthenticated`, `forbidden` or `too_many`.
        """
        caller = self.known(credential, scope)
        if self._rates is not None:
            self._rates.take(caller.owner)
        return caller

    def known(self, credential: str | None, scope: Scope) -> Caller:
        """Who comes, as `admit` tells it, where no request is counted: a worker makes none.

        Raises:
            Refused: `unauthenticated` or `forbidden`.
        """
        caller = self._access.caller(credential)
        caller.check(scope)
        return caller

    def agents(self) -> Mapping[str, AgentCard]:
        """The agents that can be asked for, by name."""
        return self._dispatcher.agents()

    def agent(self, name: str | None) -> AgentCard:
        """The agent of this name; without one, the only agent there is.

        Raises:
            Refused: there is none (`not_found`), or several and no name (`invalid`), or nobody is
                there to run any (`unavailable`).
        """
        agents = self.agents()
        if not agents:
            raise Refused("unavailable", "No worker is there yet; try again.", retry_after=1.0)
        if name is None:
            if len(agents) == 1:
                return next(iter(agents.values()))
            known = ", ".join(agents) or "none"
            raise Refused("invalid", f"Say which `agent` is meant; there are: {known}.")
        if name not in agents:
            raise unknown_agent(name, agents)
        return agents[name]

    def agent_name(self, asked: str | None) -> str:
        """The name of the agent that a job is for. One that is asked for is taken as it is, since
        who asks again is answered even where the agent has left; `start` looks for it.

        Raises:
            Refused: none is asked for, and there is none or more than one (as `agent`).
        """
        return self.agent(None).name if asked is None else asked

    def load(self) -> Load:
        """How busy it is."""
        return self._dispatcher.load()

    async def start(self, caller: Caller, job: Job) -> Reader:
        """Runs a job for a caller, in the bounds of the gateway.

        The job's owner is the caller's, whatever it says. A request that was made before is
        joined, also where no new turn would be taken.

        Raises:
            Refused: it is not taken.
            RetinueError: what it asks for cannot be, or is not there.
        """
        check_job(job)
        seconds = self.bounds.seconds(job.seconds)
        job = structs.replace(job, owner=caller.owner, seconds=seconds)
        try:
            return await self._turns.start(job, partial(self._check, job))
        except RecursionError as error:
            raise Refused("invalid", "What is asked is nested too deeply.") from error

    def find(self, caller: Caller, turn: str, stream: str = "") -> Kept:
        """A running or lately ended turn of the caller's. See `Turns.find`.

        Raises:
            Refused: there is none (`not_found`).
        """
        return self._turns.find(turn, caller.owner, stream)

    def running(self, caller: Caller, conversation: str) -> str | None:
        """The turn of the caller's that is going on in a conversation, or None."""
        return self._turns.of(conversation, caller.owner)

    async def drain(self, seconds: float) -> None:
        """Takes no more turns, and waits until the running ones have ended; those that have not
        after so many seconds are cancelled."""
        self._draining = True
        timer = asyncio.get_running_loop().call_later(seconds, self._turns.hurry)
        try:
            await self._dispatcher.drain(seconds)
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Ends all turns, and lets go of the dispatcher."""
        self._draining = True
        await self._turns.close()
        await self._dispatcher.close()

    async def _check(self, job: Job) -> None:
        if self._draining:
            raise Refused("unavailable", "The server is shutting down; ask another one.")
        card = self.agent(job.agent)
        if job.conversation is not None:
            if not card.keeps:
                raise ConfigError(
                    f"The agent {job.agent!r} keeps no conversations; leave `conversation` out."
                )
            await self.conversations.check(job.conversation, job.owner)
        # Last, for nothing may be awaited between this and the count of the new turn.
        limit = self.bounds.turns
        if limit is not None and self._turns.running(job.owner) >= limit:
            raise Refused(
                "too_many",
                f"{limit} turns of yours are running, and no more may; wait for one to end.",
                retry_after=1.0,
            )

    def _told(self, turn: Kept, event: Event) -> None:
        for watch in self._watches:
            try:
                watch(turn, event)
            except Exception as error:  # the turn is not to end for one who listens
                record(error, f"A watch of turn {turn.turn}")


def _check_kinds(access: object, bounds: object, keeping: object) -> None:
    if access is not None and not callable(getattr(access, "caller", None)):
        raise ConfigError(f"access={access!r} lets nobody in; give ApiKeys, Tokens or AnyOf.")
    for name, given, kind in (("bounds", bounds, Bounds), ("keeping", keeping, Keeping)):
        if given is not None and not isinstance(given, kind):
            raise ConfigError(f"{name}={given!r} cannot be used; give {kind.__name__}(...).")


def check_job(job: Job) -> None:
    """Refuses what no client may ask for, before any work is done.

    Raises:
        ConfigError: names it.
    """
    if job.conversation is not None:
        check_conversation(job.conversation)
    if job.request is not None and not 0 < len(job.request) <= _REQUEST_ID:
        raise ConfigError(f"A request id has 1 to {_REQUEST_ID} characters.")
    if job.seconds is not None and not 0 < job.seconds < 1e9:
        raise ConfigError(f"A turn cannot have {job.seconds!r} seconds; give a number above 0.")
    for name in job.context:
        if name.startswith(RESERVED):
            raise ConfigError(f"The context cannot hold {name!r}; such names are the server's.")
    for message in job.messages:
        _check_places(message.parts)


def check_conversation(id: str) -> None:
    """Refuses an id that could not stand in a path as it is.

    Raises:
        ConfigError: says what an id is made of.
    """
    if not _ID.fullmatch(id) or id in (".", ".."):
        raise ConfigError(
            "The id of a conversation is made of 1 to 200 letters, digits and . _ ~ : @ -"
        )


def _check_places(parts: Sequence[Part]) -> None:
    for part in parts:
        if isinstance(part, ToolResult):
            _check_places(part.parts)
        elif isinstance(part, Image | File) and part.url is not None:
            # Anything else is a file of the server's, or one that its account has uploaded.
            if not part.url.startswith(("https://", "data:")):
                raise ConfigError("A `url` begins with https:// or data: .")
            if part.data is not None:
                raise ConfigError("A part has `data` or a `url`, not both.")
