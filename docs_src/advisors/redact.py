from retinue import Agent, tool
from retinue.advisors import Redact
from retinue.models import Scripted
from retinue.models.scripted import Say, call


@tool
def find(email: str) -> dict[str, str]:
    """Finds a customer."""
    return {"customer": "C-12345", "phone": "+47 22 12 34 56", "asked": email}


model = Scripted(  # or "openai:gpt-5-mini", "ollama:qwen3", "local" …
    call("find", email="<EMAIL_1>"),
    Say(text=["<CUST", "OMER_1> is <EMAIL_1>; call <PHO", "NE_1>."]),
)
hidden = Redact("email", "phone", {"customer": r"C-\d{5}"}, reversible=True)
agent = Agent(model, tools=[find], advisors=[Redact("phone", where="stored"), hidden])
result = agent.run_sync("Who is ann@example.org?")

print("sent:  ", model.requests[1].messages[0].text)
print("sent:  ", model.requests[1].messages[2].tool_results[0].text)
print("shown: ", result.text)
print("stored:", result.messages[-1].text)
