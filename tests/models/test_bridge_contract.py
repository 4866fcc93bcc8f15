"""The bridge keeps the contract of models, as far as the client below it lets it.

OpenAI's client stands below it here: that one can be pointed at a server on this machine.
"""

from collections.abc import AsyncIterator

import pytest

from retinue.models import Bridge, Model
from retinue.testing.connections import BOTH, SECRET
from retinue.testing.dialects import ChatCompletions
from retinue.testing.models import KEY, ModelContract
from retinue.testing.vendor import Fault, Step, Vendor
from tests.models.test_contract import without


# What the client cannot do: it does not replace a dead connection unnoticed (the call fails as one
# that may be tried again), and does not tell a proxy that refuses from a vendor out of reach.
@without(
    "test_kept_connections_that_turn_out_dead_are_replaced_unnoticed",
    "test_a_proxy_that_refuses_is_named_and_its_password_is_not",
)
class TestBridge(ModelContract):
    dialect = ChatCompletions()

    @pytest.fixture(autouse=True)
    async def closed_in_the_end(self) -> AsyncIterator[None]:
        self._made: list[Bridge] = []
        yield
        for model in self._made:
            await model.close()

    def model(self, url: str) -> Model:
        model = Bridge("openai-chat:gpt-4o", base_url=url, api_key=KEY)
        self._made.append(model)
        return model

    # After a stream that failed the client's generators are closed by the loop, some ticks later.
    @pytest.mark.parametrize(
        ("fault", "stream"),
        [("reset", True), ("close", True), ("reset", False), ("close", False), ("error", False)],
    )
    async def test_a_failed_call_leaves_nothing_behind(
        self, vendor: Vendor, fault: Fault, stream: bool
    ) -> None:
        await super().test_a_failed_call_leaves_nothing_behind(vendor, fault, stream)

    # Of an error in the place of a whole answer pydantic-ai keeps nothing, not even its words.
    @pytest.mark.parametrize("stream", [True], ids=["stream"])
    async def test_an_error_in_place_of_an_answer_is_an_error(
        self, vendor: Vendor, stream: bool
    ) -> None:
        await super().test_an_error_in_place_of_an_answer_is_an_error(vendor, stream)

    @pytest.mark.rule("R-FAIL-3")
    @pytest.mark.parametrize(
        "step",
        [
            Step(status=401, message=f"Wrong key: {KEY}!"),
            Step(status=500, message=f"Stack trace: Authorization: Bearer {KEY}"),
            Step(status=400, message=f"The header x-tenant-token was {SECRET}"),
        ],
        ids=["401", "500", "header"],
    )
    @BOTH
    async def test_a_key_never_shows_even_if_the_vendor_repeats_it(
        self, vendor: Vendor, step: Step, stream: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        await super().test_a_key_never_shows_even_if_the_vendor_repeats_it(
            vendor, step, stream, caplog
        )
