"""Turns that outlive the process they were begun in, on DBOS and its database.

    async with Durable(agent, database="turns.db") as durable:
        result = await durable.run("Book the train to Oslo.", conversation="c-1")

`Durable` wraps an agent and leaves it as it is. `durable.py` is what an application uses,
`turns.py` what runs in a worker, `execution.py` one run of a turn and its steps, `model.py`,
`engine.py` and `layers.py` the record that stands before the agent's parts, `documents.py` what is
kept, `host.py` all that knows DBOS, `leases.py` how a dead worker is found, and `order.py` whose
turn it is. DBOS is imported when a `Durable` is opened.
"""

from retinue.durable.durable import Durable
from retinue.durable.handle import Handle, TurnStatus
from retinue.durable.turns import DataMaker

__all__ = ["DataMaker", "Durable", "Handle", "TurnStatus"]
