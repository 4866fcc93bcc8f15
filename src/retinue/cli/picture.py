"""`retinue explain`: an agent's onion as a picture, its warnings marked."""

from rich.console import Console
from rich.text import Text

from retinue.agent import Agent
from retinue.cli.wording import safe


def print_onion(console: Console, agent: Agent) -> None:
    """Prints what `agent.explain()` shows; on a terminal, warnings stand out."""
    onion = agent.explain()
    for line in str(onion).splitlines():
        warns = any(warning in line for warning in onion.warnings)
        text = Text(safe(line), style="bold yellow" if warns else "")
        console.print(text, highlight=False, soft_wrap=True)
