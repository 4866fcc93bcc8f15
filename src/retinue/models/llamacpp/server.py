"""Processes that serve a model: one for each set of weights and settings, shared, on loopback.

A server is started when it is first asked for, and again if it died. It ends with the process
that started it; a forked child uses it while it lasts, and does not end it.
"""

import atexit
import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, structs

from retinue.errors import ConfigError, MissingExtraError

_CHILD: Final = Path(__file__).with_name("child.py")
_FAREWELL: Final = 2.0  # seconds a server has to end by itself
_KNOCK: Final = 1.0  # seconds that a connection to it may take; on loopback it takes none


class Options(Struct, frozen=True):
    """What a server runs.

    Attributes:
        path: the GGUF file.
        context: tokens of one conversation, prompt and answer together.
        parallel: answers that are written at once; more wait for their turn.
        threads: CPU threads.
    """

    path: str
    context: int
    parallel: int
    threads: int

    @property
    def name(self) -> str:
        """The name of the file, without its ending."""
        return Path(self.path).stem


class Server(Struct, frozen=True):
    """A server that runs: its address and its key."""

    address: str
    key: str
    process: subprocess.Popen[str]
    owner: int

    @property
    def alive(self) -> bool:
        """Whether it still serves. A forked child is no parent of the process, so it knocks."""
        if self.owner == os.getpid():
            return self.process.poll() is None
        place = urlsplit(self.address)
        try:
            socket.create_connection((place.hostname, place.port), _KNOCK).close()
        except OSError:
            return False
        return True


_servers: dict[Options, Server] = {}
_starting: dict[Options, threading.Lock] = {}


def check_installed() -> None:
    """Refuses to go on without llama.cpp.

    Raises:
        MissingExtraError: the package xllamacpp is not installed.
    """
    if find_spec("xllamacpp") is None:
        raise MissingExtraError(
            "The embedded model runs on llama.cpp, whose package xllamacpp is not installed."
            ' Install it with `pip install "retinue[local]"`.'
        )


def running(options: Options) -> Server | None:
    """The server for these options, if it runs."""
    server = _servers.get(options)
    return server if server is not None and server.alive else None


def start(options: Options) -> Server:
    """The server for these options. It blocks while the weights are loaded, and loads them once.

    Raises:
        ConfigError: llama.cpp cannot load the weights.
    """
    with _starting.setdefault(options, threading.Lock()):
        server = running(options)
        if server is None:
            dead = _servers.pop(options, None)
            if dead is not None:
                _stop(dead)
            server = _servers[options] = _start(options)
        return server


def _start(options: Options) -> Server:
    key = secrets.token_urlsafe(24)
    process = subprocess.Popen(
        [sys.executable, "-P", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    assert process.stdin is not None
    assert process.stdout is not None
    asked = {"name": options.name, "key": key, **structs.asdict(options)}
    answer: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError):  # it died; what it said, if anything, is told
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
    process.stdout.close()
    server = Server(answer.get("address", ""), key, process, os.getpid())
    if not server.address:
        _stop(server)
        said = answer.get("error", f"its process ended with {process.returncode}")
        raise ConfigError(
            f"llama.cpp cannot load {options.path} with a context of {options.context} tokens"
            f" ({said.rstrip('.')}). Check that the file is whole and a chat model, and that it"
            " fits into memory."
        )
    return server


def _stop(server: Server) -> None:
    process = server.process
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(_FAREWELL)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _renew_locks() -> None:
    _starting.clear()  # a lock that another thread held would stay locked in the child for ever


@atexit.register
def stop_all() -> None:
    """Ends the servers that this process started."""
    for options, server in list(_servers.items()):
        if server.owner == os.getpid():
            del _servers[options]
            _stop(server)


os.register_at_fork(after_in_child=_renew_locks)
