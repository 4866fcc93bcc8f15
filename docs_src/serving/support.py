"""A declared agent, in an app of one's own, asked over HTTP."""

import asyncio
import json
import urllib.request

from starlette.applications import Starlette
from starlette.routing import Mount

# region declare
import retinue.serve
from retinue import Agent, tool
from retinue.models import Scripted, call


@tool
def order_state(order: int) -> str:
    """Where an order is."""
    return f"Order {order} is on its way."


@retinue.serve.agent
def support() -> Agent:
    """Answers customers."""
    answer = (call("order_state", order=7), "It is on its way.")
    return Agent(Scripted(*answer, repeat=True), tools=[order_state])  # or "openai:gpt-5-mini"


# endregion

# region mount
service = retinue.serve.app(support)
app = Starlette(routes=[Mount("/agents", service)])
# endregion


def ask(url: str) -> None:
    body = json.dumps({"input": "Where is order 7?", "conversation": "c-1"}).encode()
    head = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/turns", body, head)) as answer:
        got = json.load(answer)
    print(got["status"], got["text"])
    with urllib.request.urlopen(f"{url}/v1/conversations/c-1/messages") as answer:
        roles = [entry["message"]["role"] for entry in json.load(answer)["messages"]]
    print(*roles)


async def main() -> None:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    await asyncio.to_thread(ask, f"http://127.0.0.1:{port}/agents")
    server.should_exit = True
    await running
    await service.state.gateway.close()


if __name__ == "__main__":
    asyncio.run(main())
