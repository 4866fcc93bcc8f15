"""What every model behind HTTP must do, as tests: retinue's own adapters pass them, and yours
should.

Subclass `ModelContract` in a test module, say what format the vendor speaks, and make the model
for a base URL. It needs pytest and pytest-asyncio. Formats of which there is a `Dialect` already
are in `retinue.testing.dialects`:

    from retinue.testing.dialects import ChatCompletions
    from retinue.testing.models import KEY, ModelContract

    class TestMyModel(ModelContract):
        dialect = ChatCompletions()

        def model(self, url):
            return MyModel("some-model", base_url=url, api_key=KEY)

The tests run against a `FaultyVendor` of that format. For another vendor give a fixture `vendor`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from email.utils import formatdate
from typing import Any, Final, get_args

import pytest

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import (
    ConfigError,
    ModelBroken,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
    classify,
)
from retinue.messages import Content, File, Image, Message, ToolCall, user
from retinue.models.base import Model, ModelRetry, generate
from retinue.testing.calls import Heard, chat
from retinue.testing.connections import (
    BOTH,
    SAID,
    SECRET,
    ConnectionContract,
    check_secrets,
    check_sentence,
)
from retinue.testing.faulty import FaultyVendor
from retinue.testing.vendor import KEY, TEXT, TOKENS, Bad, Dialect, Step, Vendor
from retinue.tools import tool

__all__ = ["KEY", "ModelContract"]

CALL: Final = ToolCall("call_1", "weather", '{"city": "Zürich", "days": [1, 2], "in": {"k": null}}')
NOW: Final = ModelRetry(base=0.0)
FORM: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
VIDEO: Final = File(b"RIFF", None, "video/x-msvideo", "a.avi")


def as_value(call: ToolCall) -> Any:
    """The arguments of a call."""
    return json.loads(call.arguments)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: rain"


class ModelContract(ConnectionContract):
    """The tests: those of the way to the vendor are in `ConnectionContract`, all others here.

    Attributes:
        dialect: the format that the vendor speaks.
        unsupported: parts of a user's message that the model does not take.
    """

    dialect: Dialect
    unsupported: Sequence[Content] = (VIDEO,)

    @pytest.fixture
    async def vendor(self) -> AsyncIterator[Vendor]:
        """The vendor that the model asks."""
        async with FaultyVendor(self.dialect) as vendor:
            yield vendor

    def calling(self, call: ToolCall, text: Sequence[str] = ()) -> list[Step]:
        """The answers of the vendor that make the model ask for a tool."""
        return [Step(text=text, call=call)]

    # Answers.

    async def test_it_is_a_model(self, vendor: Vendor) -> None:
        model = self.model(vendor.url)
        assert isinstance(model, Model)
        assert model.name
        assert model.provider

    @pytest.mark.behaviour("B-US-1")
    @pytest.mark.parametrize("text", [("Hi",), TEXT, (" \n", "a", "\n\n ")], ids=repr)
    async def test_streamed_or_whole_the_message_is_the_same(
        self, vendor: Vendor, text: Sequence[str]
    ) -> None:
        vendor.script(Step(text=text), Step(text=text))
        streamed, whole = [await self.answer(vendor, stream=stream) for stream in (True, False)]
        assert streamed.with_(id=whole.id) == whole
        assert whole.text == "".join(text)
        assert whole.finish == "stop"
        assert whole.usage is not None
        assert (whole.usage.input, whole.usage.output) == TOKENS

    async def test_streamed_or_whole_the_call_is_the_same(self, vendor: Vendor) -> None:
        vendor.script(*self.calling(CALL), *self.calling(CALL))
        streamed, whole = [
            await self.answer(vendor, stream=stream, tools=(weather,)) for stream in (True, False)
        ]
        for message in (streamed, whole):
            (call,) = message.tool_calls
            assert call.id
            assert call.name == CALL.name
            assert as_value(call) == as_value(CALL)
            assert message.finish == "tool_calls"
        assert streamed.usage == whole.usage

    async def test_many_calls_at_once_each_get_their_own_answer(self, vendor: Vendor) -> None:
        numbers = range(100, 140)
        vendor.script(*(Step(when=f"question {n}", text=[f"answer {n}"]) for n in numbers))
        model = self.model(vendor.url)
        heard = [Heard() for _ in numbers]
        await asyncio.gather(
            *(
                model.generate(chat(f"question {n}", stream=n % 2 == 0), h)
                for n, h in zip(numbers, heard, strict=True)
            )
        )
        assert [h.text for h in heard] == [f"answer {n}" for n in numbers]

    async def test_a_closed_model_can_be_asked_again(self, vendor: Vendor) -> None:
        vendor.script(Step(repeat=True))
        model = self.model(vendor.url)
        await model.close()
        for _ in range(2):
            heard = Heard()
            await model.generate(chat(stream=True), heard)
            assert heard.text == SAID
            await model.close()
            await model.close()

    # Answers that are none.

    @BOTH
    async def test_a_web_page_is_no_answer(self, vendor: Vendor, stream: bool) -> None:
        vendor.script(Step(html=True))
        error = await self.failure(vendor, stream=stream)
        assert type(error) is ModelBroken
        assert "web page" in str(error)
        assert "base_url" in str(error)

    async def test_json_that_is_cut_short_is_no_answer(self, vendor: Vendor) -> None:
        vendor.script(Step(truncated=True))
        heard = Heard()
        error = await self.failure(vendor, heard)
        assert type(error) is ModelBroken
        assert not error.retryable
        assert not heard.deltas

    async def test_a_stream_that_is_cut_in_the_middle_of_an_event_is_broken(
        self, vendor: Vendor
    ) -> None:
        vendor.script(Step(truncated=True))
        heard = Heard()
        error = await self.failure(vendor, heard, stream=True)
        assert type(error) is ModelBroken
        assert not error.retryable
        assert heard.text
        assert SAID.startswith(heard.text)

    @pytest.mark.behaviour("B-ST-12")
    async def test_an_error_within_the_answer_comes_after_the_text_before_it(
        self, vendor: Vendor
    ) -> None:
        vendor.script(Step(fault="error", at="within", message="The GPU is on fire."))
        heard = Heard()
        error = await self.failure(vendor, heard, stream=True)
        assert "The GPU is on fire." in str(error)
        assert heard.text
        assert SAID.startswith(heard.text)

    @BOTH
    async def test_an_error_in_place_of_an_answer_is_an_error(
        self, vendor: Vendor, stream: bool
    ) -> None:
        vendor.script(Step(fault="error", message="The GPU is on fire."))
        heard = Heard()
        error = await self.failure(vendor, heard, stream=stream)
        assert "The GPU is on fire." in str(error)
        assert not heard.started

    async def test_an_answer_that_stops_before_its_end_is_broken(self, vendor: Vendor) -> None:
        vendor.script(Step(fault="stop", at="within"))
        heard = Heard()
        error = await self.failure(vendor, heard, stream=True)
        assert type(error) is ModelBroken
        assert not error.retryable
        assert heard.text
        assert SAID.startswith(heard.text)

    async def test_an_answer_that_stops_before_its_text_may_be_asked_for_again(
        self, vendor: Vendor
    ) -> None:
        vendor.script(Step(fault="stop"))
        error = await self.failure(vendor, stream=True)
        assert type(error) is ModelUnreachable

    # Refusals.

    @pytest.mark.rule("R-FAIL-1", "R-FAIL-3")
    @pytest.mark.parametrize("bad", get_args(Bad))
    @BOTH
    async def test_what_is_bad_of_a_request_is_told_in_the_words_of_the_vendor(
        self, vendor: Vendor, bad: Bad, stream: bool
    ) -> None:
        vendor.script(Step(bad=bad))
        output = Output(FORM, "answer") if bad == "schema" else None
        error = await self.failure(vendor, stream=stream, output=output)
        expected = self.dialect.refusals[bad]
        assert expected.words in str(error)
        assert classify(error) == expected.failure
        assert error.retryable is (expected.failure == "transient")
        assert error.status == expected.status
        if not error.retryable:
            assert type(error) is ModelRefused
        if bad == "model":
            assert self.model(vendor.url).name in str(error)
        if bad == "key":
            assert "key" in str(error).lower()

    async def test_a_part_that_the_model_does_not_take_is_refused_before_the_call(
        self, vendor: Vendor
    ) -> None:
        for part in self.unsupported:
            with pytest.raises(ConfigError) as caught:
                await self.model(vendor.url).generate(chat(user("Look:", part)), Heard())
            text = str(caught.value)
            check_sentence(text)
            assert type(part).__name__ in text or getattr(part, "media_type", "Text") in text
        assert not await vendor.seen()

    async def test_an_image_without_content_is_refused_before_the_call(
        self, vendor: Vendor
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            await self.model(vendor.url).generate(chat(user(Image())), Heard())
        check_sentence(str(caught.value))
        assert not await vendor.seen()

    @pytest.mark.rule("R-FAIL-1", "R-FAIL-2")
    @pytest.mark.parametrize("status", [429, 500, 503, 529])
    @BOTH
    async def test_a_vendor_that_cannot_answer_now_may_later(
        self, vendor: Vendor, status: int, stream: bool
    ) -> None:
        vendor.script(Step(status=status, message="Come back later."))
        error = await self.failure(vendor, stream=stream)
        assert type(error) is ModelOverloaded
        assert error.retryable
        assert error.status == status
        assert classify(error) == "transient"
        assert "Come back later." in str(error)

    @pytest.mark.rule("R-FAIL-2")
    @pytest.mark.parametrize("status", [429, 503])
    async def test_the_wait_that_the_vendor_asks_for_is_read(
        self, vendor: Vendor, status: int
    ) -> None:
        later, past = (formatdate(time.time() + s, usegmt=True) for s in (90, -90))
        for asked, least, most in (("7", 7, 7), ("0.5", 0.5, 0.5), (later, 60, 90), (past, 0, 0)):
            vendor.script(Step(status=status, headers={"Retry-After": asked}))
            error = await self.failure(vendor)
            assert error.retry_after is not None
            assert least <= error.retry_after <= most

    async def test_a_wait_that_says_nothing_is_none(self, vendor: Vendor) -> None:
        vendor.script(Step(status=429, headers={"Retry-After": "soon"}))
        assert (await self.failure(vendor)).retry_after is None

    # Retries.

    @pytest.mark.rule("R-FAIL-2")
    @pytest.mark.parametrize(
        "fault",
        [Step(status=503), Step(status=429), Step(fault="reset"), Step(fault="stop")],
        ids=["503", "429", "reset", "stop"],
    )
    async def test_a_call_that_may_work_later_is_tried_again(
        self, vendor: Vendor, fault: Step
    ) -> None:
        vendor.script(fault, fault, Step())
        heard = Heard()
        failures: list[ModelError] = []
        await generate(
            self.model(vendor.url), chat(stream=True), heard, NOW, lambda e, _: failures.append(e)
        )
        assert heard.text == SAID
        assert [error.retryable for error in failures] == [True, True]
        assert len(await vendor.seen()) == 3

    @pytest.mark.rule("R-FAIL-2")
    @pytest.mark.parametrize("bad", ["key", "context"])
    async def test_what_was_refused_is_not_tried_again(self, vendor: Vendor, bad: Bad) -> None:
        vendor.script(Step(bad=bad), Step())
        with pytest.raises(ModelRefused):
            await generate(self.model(vendor.url), chat(stream=True), Heard(), NOW)
        assert len(await vendor.seen()) == 1

    @pytest.mark.rule("R-FAIL-2")
    @pytest.mark.parametrize("fault", ["reset", "close", "error", "stop"])
    async def test_after_the_first_token_nothing_is_tried_again(
        self, vendor: Vendor, fault: Any
    ) -> None:
        vendor.script(Step(fault=fault, at="within"), Step())
        with pytest.raises(ModelError):
            await generate(self.model(vendor.url), chat(stream=True), Heard(), NOW)
        assert len(await vendor.seen()) == 1

    # Secrets.

    @pytest.mark.rule("R-FAIL-3")
    @pytest.mark.parametrize(
        "step",
        [
            Step(status=401, message=f"Wrong key: {KEY}!"),
            Step(status=500, message=f"Stack trace: Authorization: Bearer {KEY}"),
            Step(fault="error", message=f"{KEY} is used up"),
            Step(status=400, message=f"The header x-tenant-token was {SECRET}"),
        ],
        ids=["401", "500", "within", "header"],
    )
    @BOTH
    async def test_a_key_never_shows_even_if_the_vendor_repeats_it(
        self, vendor: Vendor, step: Step, stream: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(0)
        vendor.script(step)
        model = self.model(vendor.url)
        settings = Settings(headers={"X-Tenant-Token": SECRET})
        with pytest.raises(ModelError) as caught:
            await model.generate(chat(stream=stream, settings=settings), Heard())
        assert "***" in str(caught.value)
        check_secrets(caught.value, model, caplog.text)

    # What the tests are made of.

    async def answer(self, vendor: Vendor, **fields: Any) -> Message:
        """The answer of one call."""
        heard = Heard()
        await self.model(vendor.url).generate(chat(**fields), heard)
        return heard.message
