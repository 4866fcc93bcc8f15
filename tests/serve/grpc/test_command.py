"""The three lines that start a gateway, a worker and a client, as processes."""

from pathlib import Path

import aiohttp
import msgspec
import pytest
from grpc import aio

from retinue.serve.access import new_key
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub
from tests.serve.grpc.processes import child, worker
from tests.serve.grpc.stage import text_of
from tests.serve.scenes import all_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

SERVE = ("-m", "retinue.cli", "serve", "--workers", "--port", "0", "--grpc-port", "0")


async def test_a_turn_over_http_and_one_over_grpc_run_on_a_worker(tmp_path: Path) -> None:
    (ann, kept_ann), (own, kept_own) = new_key("ann"), new_key("workers", ["work"])
    keys = tmp_path / "keys.jsonl"
    keys.write_bytes(b"\n".join(map(msgspec.json.encode, (kept_ann, kept_own))))
    async with child(tmp_path, *SERVE, "--api-keys", str(keys)) as gateway:
        address = (await gateway.until("gRPC listens on")).split()[-1]
        url = (await gateway.until("Listening on")).split()[-1]
        env = {"RETINUE_WORKER_TOKEN": own}
        async with worker(tmp_path, address, "quick", env=env) as serving:
            head = {"authorization": f"Bearer {ann}"}
            async with (
                aiohttp.ClientSession(headers=head) as session,
                session.post(f"{url}/v1/turns", json={"input": "x"}) as answer,
            ):
                assert answer.status == 200
                assert (await answer.json())["text"] == str(serving.pid)
            async with aio.insecure_channel(address) as channel:
                call = AgentsStub(channel).Run(
                    pb.Start(text="x"), metadata=[("authorization", f"Bearer {ann}")]
                )
                assert text_of(await all_of(aiter(call))) == str(serving.pid)
