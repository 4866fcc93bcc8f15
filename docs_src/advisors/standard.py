from retinue import Agent, Layer
from retinue.advisors import standard
from retinue.chains import CallNext, TurnRequest, TurnResponse
from retinue.models import Scripted


class Greeter:
    def after_response(self, request: TurnRequest, response: TurnResponse) -> None:
        print("to", request.owner, "-", response.text)


async def audit(request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]):
    print("about", request.messages[-1].text)
    return await call_next(request)


@standard(interceptors=[Greeter()], think="hidden", extra=[Layer("audit", turn=audit, order=250)])
def support(name: str) -> Agent:
    model = Scripted("<think>Hm.</think>It is open.")  # or "openai:gpt-5-mini", "local" …
    return Agent(model, name=name)


agent = support("desk")
agent.run_sync("The museum?", conversation="c-1", owner="ada")
print(agent.explain().chain("turn"))
