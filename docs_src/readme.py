from retinue import Agent, Settings, tool


@tool(return_direct=True)
def forecast(city: str, days: int) -> str:
    """The weather forecast for a city."""
    return f"{city}: rain for {days} days"


agent = Agent("local", tools=[forecast], settings=Settings(tool_choice="forecast"))
print(agent.run_sync("The forecast for Oslo, five days please.").text)  # Oslo: rain for 5 days
