"""A model whose calls are steps: asked once, and recorded delta by delta.

It stands below everything that looks at an answer (transforms, the log, the count of tokens), so
that an answer from the record goes the same way as one from the provider.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from retinue.chains import ChatRequest
from retinue.chains.send import Delivery, Refusal
from retinue.durable.documents import Fault, Said, encode, packed, said_in, unpacked
from retinue.durable.execution import current, outside
from retinue.messages import Delta, ToolCallDelta
from retinue.models import Model
from retinue.models.base import Send


class RecordedModel:
    """Answers with what another model says, or has said.

    Args:
        model: who is asked. What it has besides (capabilities, a counter) is there, too.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def provider(self) -> str:
        """Whose it is."""
        return self._model.provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __repr__(self) -> str:
        return repr(self._model)

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers; in a durable turn as one step."""
        execution = current()
        if execution is None:
            return await self._model.generate(request, send)
        place = execution.reserve()
        call = _Call(self._model, request, send, f"{execution.id}.{place.number:x}")
        kind = "model" if isinstance(send, Delivery) else "consult"
        text = await execution.at(place, kind, call.make)
        execution.after(place)
        if call.raised is not None:
            raise call.raised
        return call.meta if call.made else await _repeat(said_in(text), send)

    async def close(self) -> None:
        """Closes the model."""
        await self._model.close()


class _Call:
    """One call of a provider, noted as it goes."""

    def __init__(self, model: Model, request: ChatRequest, send: Send, name: str) -> None:
        self._model = model
        self._request = request
        self._send = send
        self._name = name
        self._deltas: list[Delta] = []
        self._ids: dict[int, str] = {}
        self.made = False
        self.meta: Mapping[str, Any] | None = None
        self.raised: Exception | Refusal | None = None

    async def make(self) -> str:
        """Asks, and gives the record of it."""
        self.made = True
        fault, refused = None, None
        try:
            self.meta = await self._model.generate(self._request, self._take)
        except Refusal as refusal:
            self.raised = refusal
            refused = (refusal.by, refusal.reason, refusal.answer)
        except Exception as error:
            self.raised = error
            fault = Fault.of(error)
        return encode(Said(packed(self._deltas), dict(self.meta or {}), fault, refused))

    async def _take(self, delta: Delta) -> None:
        if isinstance(delta, ToolCallDelta):
            delta = self._named(delta)
        self._deltas.append(delta)
        await self._send(delta)

    def _named(self, delta: ToolCallDelta) -> ToolCallDelta:
        """The delta with an id that the turn has not seen, and that comes out the same again."""
        known = self._ids.get(delta.index)
        if known is None:
            taken = not delta.id or delta.id in self._request.scope.call_ids
            known = f"call_{self._name}.{delta.index:x}" if taken else delta.id
            self._ids[delta.index] = known
        elif not delta.id:
            return delta
        return structs.replace(delta, id=known)


async def _repeat(said: Said, send: Send) -> Mapping[str, Any]:
    """Sends what was sent before."""
    with outside():  # as where it was first sent: what a transform asks on the side is no step
        for delta in unpacked(said.deltas):
            await send(delta)
    if said.refused is not None:
        by, reason, answer = said.refused
        raise Refusal(by, reason, answer=answer)
    if said.fault is not None:
        raise said.fault.error
    return said.meta
