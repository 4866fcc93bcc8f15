from typing import Any

from retinue import Agent, tool
from retinue.advisors import Logging
from retinue.models import Scripted
from retinue.models.scripted import call


@tool
def send(to: str, api_key: str) -> str:
    """Sends the report."""
    return f"sent to {to}"


class Lines:
    """Any object with `log` will do: a logger of structlog's, a standard one, or your own."""

    def log(self, level: int, event: str, /, **fields: Any) -> None:
        print(event, {name: fields[name] for name in fields if name not in ("ms", "call")})


model = Scripted(call("send", to="ada", api_key="s3cret-of-mine"), "It is sent.")
agent = Agent(model, tools=[send], advisors=[Logging(Lines(), preview=60)])
agent.run_sync("Send the report to Ada.", conversation="c-1")
