"""Every adapter keeps the contract of models, against a faulty server of its format."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import pytest

from retinue.messages import File, Image, ToolCall
from retinue.models import Anthropic, Gemini, Local, Model, OpenAI, PromptedTools, Responses
from retinue.models.llamacpp import server
from retinue.testing.dialects import (
    AnthropicMessages,
    ChatCompletions,
    GeminiContent,
    OpenAIResponses,
)
from retinue.testing.models import KEY, ModelContract
from retinue.testing.vendor import Bad, Refusal, Step, Vendor
from tests.models.strict_vendor import StrictVendor

AUDIO_BY_URL = File(None, "https://models.example/a.wav", "audio/wav")


Contract = TypeVar("Contract", bound=type[ModelContract])


def without(*names: str) -> Callable[[Contract], Contract]:
    """A contract without some of its tests, which must be there."""

    def cut(contract: Contract) -> Contract:
        for name in names:
            assert hasattr(contract, name)
            setattr(contract, name, None)
        return contract

    return cut


class TestOpenAI(ModelContract):
    dialect = ChatCompletions()
    unsupported = (AUDIO_BY_URL,)

    def model(self, url: str) -> Model:
        return OpenAI("gpt-4o", base_url=url, gateway="openai", api_key=KEY)


class TestAnthropic(ModelContract):
    dialect = AnthropicMessages()

    def model(self, url: str) -> Model:
        return Anthropic("claude-haiku-4-5", base_url=url, api_key=KEY)


class TestResponses(ModelContract):
    dialect = OpenAIResponses()

    def model(self, url: str) -> Model:
        return Responses("gpt-5-mini", base_url=url, gateway="openai", api_key=KEY)


class TestGemini(ModelContract):
    dialect = GeminiContent()
    unsupported = (File(b"nobody says of what type"),)

    def model(self, url: str) -> Model:
        return Gemini("gemini-3-flash", base_url=url, api_key=KEY)


class TestPromptedTools(ModelContract):
    dialect = ChatCompletions()
    unsupported = (AUDIO_BY_URL,)

    def model(self, url: str) -> Model:
        return PromptedTools(OpenAI("gpt-4o", base_url=url, gateway="openai", api_key=KEY))

    def calling(self, call: ToolCall, text: Sequence[str] = ()) -> list[Step]:
        choice = json.dumps({"action": call.name})
        return [Step(text=[choice]), Step(text=[call.arguments])]


class LlamaCpp(ChatCompletions):
    """The same format as llama.cpp's server speaks it, which knows one model and one key."""

    @property
    def refusals(self) -> Mapping[Bad, Refusal]:
        """In llama.cpp's words, where it has any of its own."""
        said = "request (9000 tokens) exceeds the available context size (4096 tokens)"
        body = {"error": {"code": 400, "message": said, "type": "exceed_context_size_error"}}
        context = Refusal(400, json.dumps(body).encode(), "9000 tokens, more than the context")
        return {**super().refusals, "context": context}


# Its server is on this machine: no proxy is between them.
@without(
    "test_the_proxy_of_the_environment_is_asked_for_hosts_elsewhere",
    "test_a_proxy_that_refuses_is_named_and_its_password_is_not",
)
class TestLocal(ModelContract):
    dialect = LlamaCpp()
    unsupported = (*ModelContract.unsupported, Image(b"x"))

    @pytest.fixture(autouse=True)
    def no_server_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def model(self, url: str) -> Model:
        faulty = server.Server(url, KEY, cast("Any", None), owner=0)
        self._patch.setattr(server, "running", lambda options: faulty)
        return Local()

    calling = TestPromptedTools.calling


# It cannot break everything: it cuts no whole answer and no event in the middle, and is no proxy.
@without(
    "test_half_of_an_answer_that_is_not_streamed_is_none",
    "test_a_stream_that_is_cut_in_the_middle_of_an_event_is_broken",
    "test_a_proxy_that_refuses_is_named_and_its_password_is_not",
)
class AtTheStrictProvider(ModelContract):
    """The contract as far as the strict provider goes."""


class TestOpenAIAtTheStrictProvider(AtTheStrictProvider):
    dialect = ChatCompletions()
    unsupported = (AUDIO_BY_URL,)

    @pytest.fixture
    def vendor(self, rig: Any, session: str) -> Vendor:
        session = f"{session}-openai"
        return StrictVendor(rig, session, rig.openai(session), self.dialect, half=1100)

    def model(self, url: str) -> Model:
        return OpenAI("gpt-4o", base_url=url, gateway="openai", api_key=KEY)


class TestAnthropicAtTheStrictProvider(AtTheStrictProvider):
    dialect = AnthropicMessages()

    @pytest.fixture
    def vendor(self, rig: Any, session: str) -> Vendor:
        session = f"{session}-anthropic"
        return StrictVendor(rig, session, rig.anthropic(session), self.dialect, half=900)

    def model(self, url: str) -> Model:
        return Anthropic("claude-haiku-4-5", base_url=url, api_key=KEY)
