"""Tools whose annotations are text, some of names that only a type checker imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retinue.tools import tool

if TYPE_CHECKING:
    from decimal import Decimal

    from retinue.tools import ToolContext


@tool
def place(at: Later, ctx: ToolContext) -> Decimal:
    """Uses a type that is defined further down."""
    return ctx.data + at.x


@tool
def lost(amount: Decimal) -> str:
    """Uses a type that nobody imports."""
    return str(amount)


@dataclass
class Later:
    x: int
