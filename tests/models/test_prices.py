"""What calls cost."""

import sys

import pytest

from retinue.chains.responses import Spent
from retinue.errors import MissingExtraError
from retinue.messages import Usage
from retinue.models import cost


def spent(model: str, provider: str, **tokens: int) -> Spent:
    return Spent(model, provider, Usage(**tokens), 1)


@pytest.mark.rule("R-USAGE-3")
def test_the_costs_of_calls_add_up_and_cached_tokens_cost_less() -> None:
    plain = cost([spent("gpt-4o", "openai", input=1000, output=100)])
    cached = cost([spent("gpt-4o", "openai", input=1000, output=100, cache_read=800)])
    assert plain == pytest.approx(0.0025 + 0.001)  # 2.50 and 10 USD for a million
    assert cached is not None
    assert plain is not None
    assert 0 < cached < plain
    both = cost(
        [
            spent("gpt-4o", "openai", input=1000, output=100),
            spent("gpt-4o", "openai", input=1000, output=100, cache_read=800),
        ]
    )
    assert both == pytest.approx(plain + cached)


@pytest.mark.parametrize("provider", ["gemini", "glm", "moonshot", "xai", "deepseek", "mistral"])
def test_providers_are_known_to_the_table_under_our_names(provider: str) -> None:
    names = {
        "gemini": "gemini-2.5-flash",
        "glm": "glm-4.6",
        "moonshot": "kimi-k2-0905-preview",
        "xai": "grok-4-0709",
        "deepseek": "deepseek-chat",
        "mistral": "mistral-large-latest",
    }
    assert cost([spent(names[provider], provider, input=1000, output=100)])


@pytest.mark.parametrize(
    "unknown",
    [
        spent("a-model-nobody-sells", "openai", input=10, output=1),
        spent("gpt-4o", "a-provider-nobody-knows", input=10, output=1),
        spent("gpt-4o", "ollama", input=10, output=1),
        spent("gpt-4o", "openai", output=1),
        spent("gpt-4o", "openai", input=10),
    ],
    ids=str,
)
def test_one_unknown_price_makes_the_sum_unknown(unknown: Spent) -> None:
    known = spent("gpt-4o", "openai", input=1000, output=100)
    assert cost([known, unknown]) is None


def test_no_calls_cost_nothing() -> None:
    assert cost([]) == 0


def test_a_count_that_contradicts_itself_has_no_price() -> None:
    assert cost([spent("gpt-4o", "openai", input=10, output=1, cache_read=500)]) is None


def test_a_missing_package_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(MissingExtraError, match=r"retinue\[prices\]"):
        cost([spent("gpt-4o", "openai", input=10, output=1)])
