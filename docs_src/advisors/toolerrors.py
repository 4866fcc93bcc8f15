from retinue import Agent, tool
from retinue.advisors import ToolErrors
from retinue.models import Scripted
from retinue.models.scripted import call


@tool
def balance(account: str) -> float:
    """The balance of an account."""
    raise ConnectionError("postgres://bank:hunter22@10.0.0.7 refused")


@tool
def transfer(account: str, amount: float) -> None:
    """Moves money."""
    raise PermissionError("no mandate")


errors = ToolErrors(
    {
        "transfer": {PermissionError: "Ask the owner of the account to allow it."},
        "transient": "The bank does not answer. Do not ask it again in this turn.",
    }
)
for advisors in ([], [ToolErrors()], [errors]):
    model = Scripted([call("balance", account="7"), call("transfer", account="7", amount=1)], "No.")
    Agent(model, tools=[balance, transfer], advisors=advisors).run_sync("Pay Ada 1 from 7.")
    for message in model.requests[1].messages[-2:]:
        print(message.tool_results[0].text)
