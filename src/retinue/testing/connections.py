"""What every model must make of the way to its vendor, as tests: a half of `ModelContract`."""

import asyncio
import time
import traceback
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from retinue.chains.settings import Settings
from retinue.errors import ModelBroken, ModelError, ModelTimeout, ModelUnreachable
from retinue.messages import Delta, TextDelta
from retinue.models.base import Model
from retinue.testing.calls import Heard, chat
from retinue.testing.faulty import PROMPT
from retinue.testing.vendor import KEY, TEXT, Fault, Place, Step, Vendor

BOTH: Final = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])

SAID: Final = "".join(TEXT)
BRIEF: Final = Settings(timeout=0.1)

SOON: Final = 0.1
"""Seconds within which a vendor must see that its reader has left."""

SECRET: Final = "hush-hush"
"""Stands in whatever else must not be seen, such as the password of a proxy."""

LONGEST: Final = 1_000
"""Characters. What is longer is no sentence that a person reads."""


def check_sentence(text: str) -> None:
    """Fails if a text is not what a person should have to read."""
    assert text.endswith("."), text
    assert "\n" not in text, text
    assert len(text) <= LONGEST, text
    assert KEY not in text, text


def check_secrets(error: BaseException, model: Model, logged: str) -> None:
    """Fails if the key, or another secret of the tests, can be seen anywhere."""
    shown = [logged, repr(model), *traceback.format_exception(error)]
    met: list[BaseException | None] = [error]
    for one in met:  # grows by what is behind each
        if one is not None:
            shown += [repr(one), repr(vars(one))]
            met += [one.__cause__, one.__context__]
    for text in shown:
        assert KEY not in text, text
        assert SECRET not in text, text


@pytest.mark.asyncio
class ConnectionContract:
    """The tests of connections."""

    def model(self, url: str) -> Model:
        """The model under test.

        Args:
            url: the base URL of its vendor.
        """
        raise NotImplementedError("Give the test class a method called model.")

    async def failure(
        self, vendor: Vendor, heard: Heard | None = None, **fields: Any
    ) -> ModelError:
        """The error of one call, which is checked to be one clear sentence."""
        model = self.model(vendor.url)
        with pytest.raises(ModelError) as caught:
            async with asyncio.timeout(PROMPT):
                await model.generate(chat(**fields), Heard() if heard is None else heard)
        text = str(caught.value)
        check_sentence(text)
        assert model.provider in text or model.name in text
        return caught.value

    # Connections that break.

    @pytest.mark.rule("R-FAIL-2")
    @pytest.mark.parametrize("fault", ["reset", "close"])
    @pytest.mark.parametrize("at", ["before", "headers"])
    @BOTH
    async def test_a_connection_that_breaks_before_the_answer_is_worth_a_retry(
        self, vendor: Vendor, fault: Fault, at: Place, stream: bool
    ) -> None:
        vendor.script(Step(fault=fault, at=at), Step())
        error = await self.failure(vendor, stream=stream)
        assert type(error) is ModelUnreachable
        assert error.retryable
        assert len(await vendor.seen()) == 1  # a new connection is not tried again unnoticed

    @pytest.mark.rule("R-FAIL-2")
    @pytest.mark.parametrize("fault", ["reset", "close"])
    async def test_a_connection_that_breaks_within_the_answer_leaves_half_of_it(
        self, vendor: Vendor, fault: Fault
    ) -> None:
        vendor.script(Step(fault=fault, at="within"), Step())
        heard = Heard()
        error = await self.failure(vendor, heard, stream=True)
        assert type(error) is ModelBroken
        assert not error.retryable
        assert heard.text
        assert SAID.startswith(heard.text)

    @pytest.mark.parametrize("fault", ["reset", "close"])
    async def test_half_of_an_answer_that_is_not_streamed_is_none(
        self, vendor: Vendor, fault: Fault
    ) -> None:
        vendor.script(Step(fault=fault, at="within"), Step())
        heard = Heard()
        error = await self.failure(vendor, heard)
        assert type(error) is ModelUnreachable
        assert not heard.deltas

    # Time.

    @BOTH
    async def test_silence_before_the_answer_is_a_timeout(
        self, vendor: Vendor, stream: bool
    ) -> None:
        vendor.script(Step(fault="hang"))
        error = await self.failure(vendor, stream=stream, settings=BRIEF)
        assert type(error) is ModelTimeout
        assert error.retryable
        assert "0.1 s" in str(error)
        await vendor.left()

    async def test_silence_within_the_answer_is_a_timeout(self, vendor: Vendor) -> None:
        vendor.script(Step(fault="hang", at="within"))
        heard = Heard()
        error = await self.failure(vendor, heard, stream=True, settings=BRIEF)
        assert type(error) is ModelTimeout
        assert heard.text
        assert SAID.startswith(heard.text)
        await vendor.left()

    async def test_a_slow_answer_is_no_timeout_while_bytes_come(self, vendor: Vendor) -> None:
        vendor.script(Step(drip=0.05))
        heard = Heard()
        began = time.monotonic()
        settings = Settings(timeout=0.25)
        await self.model(vendor.url).generate(chat(stream=True, settings=settings), heard)
        assert heard.text == SAID
        assert time.monotonic() - began > 0.3

    # Bytes.

    @pytest.mark.behaviour("B-ST-11")
    @pytest.mark.parametrize(
        "step",
        [
            Step(split=1),
            Step(split="utf8"),
            Step(gzip=True),
            Step(gzip=True, split=1),
            Step(crlf=True, split=3),
            Step(comments=True, split=5),
        ],
        ids=["bytes", "characters", "gzip", "gzip-bytes", "crlf", "comments"],
    )
    @BOTH
    async def test_an_answer_is_the_same_however_its_bytes_come(
        self, vendor: Vendor, step: Step, stream: bool
    ) -> None:
        vendor.script(step)
        heard = Heard()
        await self.model(vendor.url).generate(chat(stream=stream), heard)
        assert heard.text == SAID
        assert heard.message.usage is not None
        assert "gzip" in (await vendor.seen())[0].headers["accept-encoding"]

    # Kept connections.

    async def test_one_connection_serves_one_call_after_another(self, vendor: Vendor) -> None:
        steps = [Step(), Step(status=400), Step(html=True), Step(gzip=True), Step(), Step()]
        vendor.script(*steps)
        model = self.model(vendor.url)
        for n in range(len(steps)):
            try:
                await model.generate(chat(stream=n % 2 == 0), Heard())
            except ModelError:
                assert n in (1, 2)
        seen = await vendor.seen()
        assert len(seen) == len(steps)
        assert len({request.connection for request in seen}) == 1

    @pytest.mark.rule("R-FAIL-2")
    @BOTH
    async def test_kept_connections_that_turn_out_dead_are_replaced_unnoticed(
        self, vendor: Vendor, stream: bool
    ) -> None:
        # Three calls at once, so that three connections are kept; each is cut at its next use.
        vendor.script(*[Step(stale="reset", drip=0.001)] * 3, Step())
        model = self.model(vendor.url)
        await asyncio.gather(*(model.generate(chat(stream=True), Heard()) for _ in range(3)))
        heard = Heard()
        await model.generate(chat(stream=stream), heard)
        assert heard.text == SAID
        connections = [request.connection for request in await vendor.seen()]
        assert len(connections) == 7
        assert len({*connections}) == 4

    async def test_a_kept_connection_that_the_vendor_closed_is_not_missed(
        self, vendor: Vendor
    ) -> None:
        vendor.script(Step(stale="closed"), Step())
        model = self.model(vendor.url)
        for _ in range(2):
            heard = Heard()
            await model.generate(chat(stream=True), heard)
            assert heard.text == SAID

    # Leaving early.

    @pytest.mark.rule("R-LOOP-8")
    @pytest.mark.behaviour("B-ST-9")
    @pytest.mark.parametrize("at", ["before", "within"])
    async def test_cancelling_a_call_closes_its_connection_and_leaves_nothing(
        self, vendor: Vendor, at: Place
    ) -> None:
        before = asyncio.all_tasks()
        vendor.script(Step(fault="hang", at=at))
        model = self.model(vendor.url)
        heard = Heard()
        call = asyncio.create_task(call_of(model, heard))
        await vendor.arrived(1)
        if at == "within":
            await heard.spoke.wait()
        cancelled = time.time()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        left = (await vendor.left()).left
        assert left is not None
        assert left - cancelled < SOON
        await vendor.idle()
        assert asyncio.all_tasks() == before

    async def test_a_reader_that_fails_closes_the_connection(self, vendor: Vendor) -> None:
        vendor.script(Step(fault="hang", at="within"))

        async def fail(delta: Delta) -> None:
            if type(delta) is TextDelta:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await self.model(vendor.url).generate(chat(stream=True), fail)
        await vendor.left()
        await vendor.idle()

    @pytest.mark.parametrize(
        ("fault", "stream"),
        [
            ("reset", True), ("close", True), ("error", True), ("stop", True), ("reset", False),
            ("close", False), ("error", False),
        ],
    )  # fmt: skip
    async def test_a_failed_call_leaves_nothing_behind(
        self, vendor: Vendor, fault: Fault, stream: bool
    ) -> None:
        before = asyncio.all_tasks()
        vendor.script(Step(fault=fault, at="within" if stream else "headers", message="no"))
        model = self.model(vendor.url)
        with pytest.raises(ModelError):
            await model.generate(chat(stream=stream), Heard())
        await model.close()
        await vendor.idle()
        assert asyncio.all_tasks() == before

    # Proxies.

    async def test_the_proxy_of_the_environment_is_asked_for_hosts_elsewhere(
        self, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", with_user(vendor.url))
        vendor.script(Step())
        heard = Heard()
        await self.model(elsewhere(vendor.url)).generate(chat(stream=True), heard)
        assert heard.text == SAID
        (request,) = await vendor.seen()
        assert request.headers["host"] == "models.example"
        assert request.headers["proxy-authorization"].startswith("Basic ")

    @pytest.mark.rule("R-FAIL-3")
    async def test_a_proxy_that_refuses_is_named_and_its_password_is_not(
        self, vendor: Vendor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(0)
        monkeypatch.setenv("https_proxy", with_user(vendor.url))
        model = self.model(elsewhere(vendor.url, "https"))
        with pytest.raises(ModelUnreachable, match="proxy refuses") as caught:
            await model.generate(chat(stream=True), Heard())
        error = caught.value
        assert not error.retryable
        check_sentence(str(error))
        assert "HTTPS_PROXY" in str(error)
        check_secrets(error, model, caplog.text)


async def call_of(model: Model, heard: Heard) -> None:
    """One streamed call, as a coroutine that a task can hold."""
    await model.generate(chat(stream=True), heard)


def with_user(url: str) -> str:
    """The address of a proxy that wants a user and a password."""
    return f"http://somebody:{SECRET}@{urlsplit(url).netloc}"


def elsewhere(url: str, scheme: str = "http") -> str:
    """The same path at another host."""
    return f"{scheme}://models.example{urlsplit(url).path}"
