"""A gateway, a worker and a client over gRPC, in one program."""

import asyncio
import json

from grpc import aio

from retinue import Agent
from retinue.models import Scripted
from retinue.serve import Gateway
from retinue.serve.grpc import Grpc, GrpcServer, Worker
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub


# region client
async def ask(address: str, question: str) -> None:
    async with aio.insecure_channel(address) as channel:
        async for event in AgentsStub(channel).Run(pb.Start(text=question)):
            if event.type == "text":
                print(json.loads(event.json)["text"])


# endregion


async def main() -> None:
    # region gateway
    dispatcher = Grpc(route="consistent_hash", queue=200, on_loss="fail")
    gateway = Gateway(dispatcher)
    server = GrpcServer(gateway, fleet=dispatcher.fleet, port=0)
    await server.start()
    # endregion
    # region worker
    agent = Agent(Scripted("It is on its way."), name="support")  # or "openai:gpt-5-mini"
    worker = Worker(agent, f"localhost:{server.port}", capacity=50)
    running = asyncio.create_task(worker.run())
    # endregion
    await worker.attached.wait()
    await ask(f"localhost:{server.port}", "Where is order 7?")
    await worker.leave(5)
    await running
    await worker.close()
    await gateway.close()
    await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
