"""An agent whose turns wait, as a module that a command imports. What its tools did is in `did`."""

TILL = """
from pathlib import Path
from retinue.tools import ask_user

def note(what):
    with Path("did").open("a") as file:
        print(what, file=file)
    return what

@tool(sensitive=True)
def pay(amount: int, to: str) -> str:
    "Pays."
    return note(f"paid {amount} to {to}")

@tool
def write(name: str) -> str:
    "Writes."
    if not Path("writable").exists():
        raise PermissionError("read-only")
    return note(f"wrote {name}")

@tool(asks="external")
def measure(what: str) -> str:
    "Measures."

def answer(request):
    last = request.messages[-1]
    if last.role == "tool":
        told = [one.text for m in request.messages[-2:] for one in m.tool_results]
        return "Done: " + ", ".join(told)
    return {
        "one": call("pay", amount=1, to="Ann"),
        "two": [call("pay", amount=1, to="Ann"), call("pay", amount=2, to="Bob")],
        "ask": call("ask_user", question="Which city?"),
        "write": call("write", name="x"),
        "measure": call("measure", what="rain"),
        "help": call("clerk", task="one"),
    }.get(last.text, "Hello.")

TOOLS = [pay, write, measure, ask_user()]
clerk = Agent(Scripted(answer, repeat=True), tools=TOOLS, gate="sensitive", name="clerk")
agent = clerk.with_(tools=[*TOOLS, clerk.as_tool()], name="till")
"""
