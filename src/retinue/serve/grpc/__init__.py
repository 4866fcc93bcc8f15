"""Serving over gRPC: a door for clients, and workers that run turns for a gateway.

From the inside out: `v1` has the messages. On the gateway, a `link` is one worker, the `fleet` is
all of them and what waits for a place, `routing` chooses among them, `running` is a turn that may
move from one to another (`seam` joins what they send), and `dispatcher` is all that behind the
`Dispatcher` protocol; `workers` and `agents` are the two services, `server` puts them on a port.
On a worker, an `assignment` runs one turn, `continuing` says how to go on with one that was begun
elsewhere, an `attachment` is one stream, and `worker` dials in again and again.

It needs `pip install 'retinue[grpc]'`. A gateway's own server is an `http` one with this beside it.
"""

from retinue.errors import MissingExtraError

try:
    from retinue.serve.grpc.channels import ClientTLS, ServerTLS
    from retinue.serve.grpc.dispatcher import Grpc
    from retinue.serve.grpc.server import GrpcServer
    from retinue.serve.grpc.worker import Worker
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] not in ("google", "grpc", "grpc_health", "grpc_reflection"):
        raise
    raise MissingExtraError(
        f"Serving over gRPC needs {error.name}; install it with: pip install 'retinue[grpc]'"
    ) from error

__all__ = ["ClientTLS", "Grpc", "GrpcServer", "ServerTLS", "Worker"]
