"""Serving: agents over HTTP and gRPC, in one process or on workers.

    app = retinue.serve.app(agent)            an ASGI app, to be run or mounted
    @retinue.serve.agent(store=SQLite(...))   declares an agent with the standard pipeline
    retinue serve module:agent                the same from the command line

From the inside out: `jobs` say what is to be run, a dispatcher (`dispatch`) runs them, `turns`
keeps what runs for its readers, `access` knows who may, and `gateway` puts these together. `http`,
`openai_api`, `agui` and `grpc` are doors to it; `wire` and `faults` are what they all say alike.

The packages of a server are imported when one is made: `pip install 'retinue[serve]'`.
"""

from retinue.serve.access import Access, AnyOf, Anyone, ApiKeys, Caller
from retinue.serve.bounds import Bounds
from retinue.serve.declared import Served, agent, app
from retinue.serve.dispatch import Dispatcher, InProcess
from retinue.serve.faults import Refused
from retinue.serve.gateway import Gateway
from retinue.serve.jobs import Job
from retinue.serve.keeping import Keeping
from retinue.serve.tokens import Tokens

__all__ = [
    "Access",
    "AnyOf",
    "Anyone",
    "ApiKeys",
    "Bounds",
    "Caller",
    "Dispatcher",
    "Gateway",
    "InProcess",
    "Job",
    "Keeping",
    "Refused",
    "Served",
    "Tokens",
    "agent",
    "app",
]
