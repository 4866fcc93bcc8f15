"""Tools that a vendor runs itself are given with `Settings(extra={"tools": ...})`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.tools import tool
from tests.wire.sends.anthropic.encoding import encoded as anthropic
from tests.wire.sends.gemini.test_refused import encoded as gemini
from tests.wire.sends.openai.encoding import encoded as openai
from tests.wire.sends.responses.test_requests import encoded as responses

OWN = {"type": "web_search"}
EVERY = pytest.mark.parametrize(
    "encoded",
    [anthropic, openai, gemini, responses],
    ids=["anthropic", "chat_completions", "gemini", "responses"],
)


@tool
def look() -> str:
    """Looks."""
    return ""


@EVERY
@pytest.mark.parametrize("given", [[OWN], (OWN,)], ids=["list", "tuple"])
def test_they_are_offered_beside_the_others(encoded: Callable[..., Any], given: Any) -> None:
    body = encoded("Hi", tools=(look,), settings=Settings(extra={"tools": given}))
    assert OWN in body["tools"]
    assert "look" in json.dumps(body["tools"])


@EVERY
def test_one_that_is_in_no_list_is_refused(encoded: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="'tools' that is no list"):
        encoded("Hi", settings=Settings(extra={"tools": OWN}))
