from retinue import Agent
from retinue.advisors import ReReading
from retinue.models import Scripted

model = Scripted("Five.")
agent = Agent(model, advisors=[ReReading()])
result = agent.run_sync("I had 7 apples and ate 2. How many are left?")
print(model.requests[0].messages[0].text)
print("the log:", result.messages[0].text)
