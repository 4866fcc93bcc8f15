from retinue import Agent, TurnRequest, TurnResponse
from retinue.advisors import Interceptors
from retinue.models import Scripted


class Audit:
    order = 10

    def before_request(self, request: TurnRequest) -> None:
        print("asked:", request.messages[-1].text)

    def after_response(self, request: TurnRequest, response: TurnResponse) -> None:
        print("told:", response.text, "by", response.blocked_by or "the model")

    def on_error(self, request: TurnRequest, error: Exception) -> None:
        print("failed:", error)


class Cache:
    order = 20

    def __init__(self) -> None:
        self.answers = {"Capital of Norway?": "Oslo."}

    async def before_request(self, request: TurnRequest) -> TurnResponse | None:
        known = self.answers.get(request.messages[-1].text)
        return None if known is None else request.respond(known)


model = Scripted("Stockholm.")  # or "openai:gpt-5-mini", "ollama:qwen3", "local" …
agent = Agent(model, advisors=[Interceptors([Cache(), Audit()])])
agent.run_sync("Capital of Norway?")
agent.run_sync("Capital of Sweden?")
