"""The strict fake provider, as the vendor of the model contract."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from retinue.testing.faulty import PROMPT
from retinue.testing.vendor import KEY, TOKENS, Dialect, Seen, Step

EVENTS = 4
"""After so many events of a stream, a part of the text has come, in either of its formats."""


class StrictVendor:
    """A session of the fake provider.

    Args:
        rig: the provider.
        session: the name of the session.
        base: the base URL of the session.
        dialect: the format; what a step refuses is refused in its words.
        half: bytes of a streamed answer that hold a part of the text.
    """

    def __init__(self, rig: Any, session: str, base: str, dialect: Dialect, half: int) -> None:
        self.url = base
        self._rig = rig
        self._session = session
        self._dialect = dialect
        self._half = half

    def script(self, *steps: Step) -> None:
        """Sets the answers to come."""
        self._rig.script(self._session, [self._told(step) for step in steps], key=KEY)

    async def seen(self) -> Sequence[Seen]:
        """The requests so far."""
        entries = await asyncio.to_thread(self._rig.log, self._session)
        return [
            Seen(
                entry["path"],
                {name.lower(): value for name, value in entry["headers"].items()},
                entry["body"],
                entry["connection"],
                entry["disconnected"],
            )
            for entry in entries
        ]

    async def arrived(self, count: int) -> None:
        """Waits until so many requests have come."""
        await self._until(lambda seen: len(seen) >= count)

    async def left(self) -> Seen:
        """Waits until the reader of the last answer has left."""
        seen = await self._until(lambda seen: bool(seen) and seen[-1].left is not None)
        return seen[-1]

    async def idle(self) -> None:
        """Waits until no connection is open."""
        async with asyncio.timeout(PROMPT):
            while (await asyncio.to_thread(self._rig.state))["open_connections"]:
                pass

    async def _until(self, happened: Callable[[Sequence[Seen]], bool]) -> Sequence[Seen]:
        async with asyncio.timeout(PROMPT):
            while not happened(seen := await self.seen()):
                pass
        return seen

    # -- a step in the words of the provider --------------------------------------------------

    def _told(self, step: Step) -> dict[str, Any]:
        told: dict[str, Any] = {"text": list(step.text), "usage": dict(zip(
            ("input", "output"), TOKENS, strict=True
        ))}  # fmt: skip
        if step.call is not None:
            call = step.call
            told["tools"] = [{"id": call.id, "name": call.name, "args": call.arguments}]
        if not step.text:
            del told["text"]
        if step.bad is not None:
            refusal = self._dialect.refusals[step.bad]
            told |= {"status": refusal.status, "body": refusal.body.decode()}
        if step.status is not None:
            body = self._dialect.failure(step.status, step.message)
            told |= {"status": step.status, "body": body.decode()}
        if step.fault is not None:
            told |= self._fault(step)
        told |= {"headers": dict(step.headers), "drip": step.drip * 1000}
        told |= {"split": step.split, "gzip": step.gzip, "comments": step.comments}
        told |= {"eol": "\r\n" if step.crlf else "\n", "html": step.html}
        told |= {"truncate": 150} if step.truncated else {}
        told |= {"stale": {"closed": 0, "reset": "reuse"}[step.stale]} if step.stale else {}
        told |= {"when": step.when} | ({"repeat": True} if step.repeat else {})
        return {name: value for name, value in told.items() if value not in (0, "", {}, False)}

    def _fault(self, step: Step) -> dict[str, Any]:
        within = step.at == "within"
        if step.fault in ("reset", "close"):
            return {step.fault: self._half if within else step.at}
        if step.fault == "hang":
            return {"hang": 2 * PROMPT} | ({"hang_at": EVENTS} if within else {})
        if step.fault == "error":
            return {"error_at": EVENTS if within else 1, "error": {"message": step.message}}
        return {"no_end": "finish" if within else 1}
