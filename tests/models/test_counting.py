"""Counting tokens, and how many a model holds."""

import time
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Agent, Image
from retinue.advisors import Memory
from retinue.errors import MissingExtraError, UnknownModelError
from retinue.messages import assistant, user
from retinue.models import (
    Capabilities,
    OpenAI,
    Scripted,
    TokenCount,
    context_window,
    count_tokens,
)

TEXT = "The quick brown fox jumps over the lazy dog."


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("openai:gpt-5-mini", 10),
        ("openai:gpt-4.1-2025-04-14", 10),
        ("openai-responses:o4-mini", 10),
        ("azure:gpt-4o", 10),
        ("openrouter:openai/gpt-4", 10),
        ("openai:ft:gpt-3.5-turbo:me::1", 10),
    ],
)
def test_a_text_for_a_model_of_openai_is_counted(model: str, tokens: int) -> None:
    count = count_tokens(TEXT, model)
    assert count == tokens
    assert count.exact
    assert str(count) == str(tokens)


def test_families_are_counted_with_tables_of_their_own() -> None:
    text = "你好世界"
    old, new = count_tokens(text, "openai:gpt-4"), count_tokens(text, "openai:gpt-4o")
    assert (old, new) == (5, 2)


@pytest.mark.parametrize(
    "model", ["anthropic:claude-opus-5-5", "ollama:qwen3:8b", "openai:gpt-6-sol"]
)
def test_an_estimate_says_that_it_is_one(model: str) -> None:
    count = count_tokens(TEXT, model)
    assert 8 <= count <= 14
    assert not count.exact
    assert str(count) == f"about {int(count)}"
    assert repr(count) == f"TokenCount({int(count)}, exact=False)"


def test_of_messages_the_frame_and_media_are_estimated() -> None:
    messages = [user(TEXT), assistant(TEXT)]
    assert count_tokens(messages, "openai:gpt-4o") == 2 * (10 + 4)
    assert not count_tokens(messages, "openai:gpt-4o").exact
    assert count_tokens(user("", Image(data=b"x")), "openai:gpt-4o") > 1000


def test_a_model_object_counts_as_its_name_does() -> None:
    model = OpenAI("gpt-4o", base_url="http://127.0.0.1:1")
    assert count_tokens(TEXT, model).exact


def test_a_model_that_nobody_serves_is_refused() -> None:
    with pytest.raises(UnknownModelError, match="names no provider"):
        count_tokens(TEXT, "gpt-4o")


def test_without_the_tables_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.models.counting.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"retinue\[tokens\]"):
        count_tokens(TEXT, "openai:gpt-4o")
    assert count_tokens(TEXT, "anthropic:claude-opus-5-5") > 0


@pytest.mark.parametrize("text", ["a" * 20_000, " " * 20_000, "日本語" * 7000, "!" * 20_000])
def test_a_run_without_a_break_is_counted_in_time_and_as_an_estimate(text: str) -> None:
    start = time.process_time()
    count = count_tokens(text, "openai:gpt-4o")
    assert time.process_time() - start < 4  # uncut it takes minutes
    assert not count.exact
    assert 0 < count <= len(text)


@given(st.text(alphabet=st.characters() | st.sampled_from("ab \n.\ud800"), max_size=600))
def test_any_text_has_a_count(text: str) -> None:
    count = count_tokens(text, "openai:gpt-4o")
    assert isinstance(count, TokenCount)
    assert (count == 0) == (text == "")
    assert count <= len(text.encode("utf-8", "replace"))


async def test_a_window_of_memory_goes_by_the_count() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return count_tokens(text, "openai:gpt-4o")

    model = Scripted("Yes.", "Yes.", "Yes.")
    long = "word " * 50
    agent = Agent(model, advisors=[Memory(max_tokens=150, reserve=20, count=count)])
    for _ in range(3):
        await agent.run(long, conversation="c")
    assert long in counted
    assert len(model.requests[1].messages) == 3
    assert len(model.requests[2].messages) == 3  # the oldest turn is left out
    fine = Memory(max_tokens=150, reserve=20, count=partial(count_tokens, model="openai:gpt-4o"))
    assert (await Agent(Scripted("Hi"), advisors=[fine]).run("Hi", conversation="d")).text == "Hi"


# -- what a model holds -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("openai:gpt-5-mini", 400_000),
        ("openai-responses:gpt-4.1", 1_047_576),
        ("anthropic:claude-haiku-4-5-20251001", 200_000),
        ("xai:grok-4.7", 500_000),  # of the price table
        ("xai-responses:grok-4.7", 500_000),
        ("mistral:nobody-knows-it", None),
        ("ollama:gpt-4o", None),  # whoever runs it says how much it holds
    ],
)
def test_what_a_model_holds_is_declared_or_in_the_table(model: str, tokens: int | None) -> None:
    assert context_window(model) == tokens


def test_what_the_user_says_of_a_model_counts_more() -> None:
    mine = Capabilities(context=9000)
    model = OpenAI("gpt-4o", base_url="http://127.0.0.1:1", capabilities=mine)
    assert context_window(model) == 9000


def test_without_the_table_only_what_is_declared_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.models.prices.find_spec", lambda _: None)
    assert context_window("xai:grok-4.7") is None
    assert context_window("openai:gpt-4o") == 128_000
