"""The agent and its turn loop. Nothing here knows an advisor or a store."""

from retinue.agent.agent import Agent
from retinue.agent.gate import Gate, Verdict
from retinue.agent.limits import Limits
from retinue.agent.run import Turn

__all__ = ["Agent", "Gate", "Limits", "Turn", "Verdict"]
