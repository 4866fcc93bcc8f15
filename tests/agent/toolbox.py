"""The tool that most tests call, and how they read what came of calls."""

from typing import Any

from retinue import tool


@tool
async def look(at: str) -> str:
    """Looks."""
    return f"{at} is here"


def told(result: Any) -> list[tuple[bool, str]]:
    """What the model was told of each call of a turn: whether it went well, and the text."""
    return [(one.ok, one.text) for message in result.messages for one in message.tool_results]
