"""A till in a process of its own: it pauses, goes on, or is killed while it works."""

import json
from pathlib import Path
from typing import Any, Final

from tests.stores.children import child

TILL: Final = """
import json, os
from retinue import Agent, Approve, Reject, Reply, ToolContext, tool
from retinue.advisors import Memory
from retinue.errors import PauseNotFound
from retinue.messages import ToolCall
from retinue.models.scripted import Scripted
from retinue.stores import PostgreSQL
from retinue.tools import Sequential

place, work = sys.argv[2], sys.argv[3]
given = [json.loads(one) for one in sys.argv[4:]]

def act(effect):
    with open(place + ".did", "a") as file:
        file.write(effect + "\\n")

async def wait(effect):
    if effect in given:
        print("at " + effect, flush=True)
        await asyncio.Event().wait()

@tool(sensitive=True)
async def pay(n: int) -> str:
    "Pays."
    act(f"pay {n}")
    await wait(f"pay {n}")
    return f"paid {n}"

@tool
async def count() -> str:
    "Counts."
    act("count")
    return "counted"

@tool(retry=True)
async def look(ctx: ToolContext) -> str:
    "Looks."
    act("look " + ctx.idempotency_key)
    await wait("look")
    return "seen"

def calls(names):
    return [
        ToolCall(f"c{n}", name.split()[0], json.dumps({"n": int(name[4:])} if " " in name else {}))
        for n, name in enumerate(names)
    ]

def store():
    if path != "-":
        return SQLite(path)
    return PostgreSQL(os.environ["RETINUE_POSTGRES"], schema=os.path.basename(place))

def agent(*script):
    return Agent(
        Scripted(*script), tools=[pay, count, look], gate="sensitive", engine=Sequential(),
        advisors=[Memory(store())],
    )

def parent(inner, outer):
    child = Agent(Scripted(*inner), name="child", tools=[pay], gate="sensitive")
    return Agent(
        Scripted(*outer), tools=[child.as_tool(), count], engine=Sequential(),
        advisors=[Memory(store())],
    )

def answers(texts):
    kinds = {"approve": Approve, "reject": Reject, "reply": Reply}
    return {name: kinds[kind](*more) for name, kind, *more in texts}

def told(result):
    results = [one.text for message in result.messages for one in message.tool_results]
    print(json.dumps([result.status, result.text, results]), flush=True)

async def main():
    if work == "ask":
        told(await agent(calls(given[0]), "done").run("Pay.", conversation="c"))
    elif work == "ask a child":
        batch = [ToolCall("p0", "child", '{"task": "pay"}'), ToolCall("p1", "count")]
        told(await parent([calls(["pay 1"])], [batch]).run("Go.", conversation="c"))
    elif work == "resume a child":
        told(await parent(["child done"], ["all done"]).resume("c", answers(given[0])))
    elif work == "pending":
        print(json.dumps([[one.id, one.tool, one.arguments] for one in await agent().pending("c")]))
    elif work == "resume":
        told(await agent("done").resume("c", answers(given[0])))
    elif work == "recover":
        told(await agent("done").recover("c"))
    elif work == "race":
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        try:
            told(await agent("done").resume("c", answers(given[0])))
        except PauseNotFound as error:
            print(json.dumps(["refused", str(error), []]), flush=True)

asyncio.run(main())
"""


def till(path: Path | str, place: Path, work: str, *given: Any) -> Any:
    """A process of the till; see the script for what it can do.

    Args:
        path: the database file, or "-" for PostgreSQL.
        place: where its effects are noted: in a file of this name with ".did" behind it.
        work: what it does.
        given: JSON values for that.
    """
    return child(TILL, path, place, work, *map(json.dumps, given))


def did(place: Path) -> list[str]:
    """The effects so far."""
    noted = Path(f"{place}.did")
    return noted.read_text().splitlines() if noted.exists() else []
