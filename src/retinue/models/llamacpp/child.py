"""The process that holds the model. It is run by path, and imports nothing of retinue.

It reads one line of JSON from standard input, loads the weights, writes one line of JSON with its
address, or with what went wrong, and serves until standard input ends: that is when the process
that started it closes the pipe, or dies in whatever way.

It is a process and not a thread because llama.cpp's bindings hold the interpreter lock while they
load, and do not survive an interpreter that ends while an answer is being written.
"""

import json
import os
import signal
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Serves until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    server: Any = None
    try:
        server = serve(json.loads(sys.stdin.readline()))
        answer: dict[str, str] = {"address": server.listening_address}
    except Exception as error:
        answer = {"error": str(error) or type(error).__name__}
    said.write(json.dumps(answer) + "\n")
    said.flush()
    if server is not None:
        sys.stdin.read()
    os._exit(0)  # not by way of the server's destructor, which waits for the answers under way


def serve(options: dict[str, Any]) -> Any:
    """The running server for `path`, `name`, `context`, `parallel`, `threads` and `key`."""
    bindings: Any = import_module("xllamacpp")
    params = bindings.CommonParams()
    params.model.path = options["path"]
    params.model_alias = {options["name"]}  # what it calls itself, instead of the path
    params.n_ctx = options["context"] * options["parallel"]  # llama.cpp shares it among the slots
    params.n_parallel = options["parallel"]
    params.cpuparams.n_threads = options["threads"]
    params.cpuparams_batch.n_threads = options["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [options["key"]]
    params.cache_ram_mib = 0  # prompts of idle slots would be kept, in up to 8 GiB
    params.verbosity = -1
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    return bindings.Server(params)


if __name__ == "__main__":
    main()
