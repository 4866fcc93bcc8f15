"""`retinue replay`: a recorded turn again, without and with what has changed."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Agents, Cli
from tests.cli.till import TILL

MORE = """
async def polite(request, call_next):
    return await call_next(
        request.with_(
            instructions=[*request.instructions, "Be polite."],
            settings=Settings(temperature=0.5, headers={"Authorization": "secret"}),
        )
    )

async def longer(request, call_next):
    response = await call_next(request)
    return await call_next(request.again("Longer."))

async def foreign(request, call_next):
    return await call_next(request)

advisor = Layer("polite", chat=polite)
advisors = [advisor]
def made():
    return advisors
better = agent.with_(advisors=advisors, instructions="You are a teller.")
longing = agent.with_(advisors=[Layer("longer", turn=longer)])
diary = agent.with_(advisors=[Layer("diary", turn=foreign, traits=frozenset({"memory"}))])
own = agent.with_(advisors=[Memory(SQLite("own.db"))])
"""


@pytest.fixture
def house(cli: Cli, agents: Agents) -> str:
    """A module of agents; the conversation `c` has a turn that called a tool, and another."""
    house = agents(TILL + MORE)
    cli("run", "one", "--agent", f"{house}:agent", "--conversation", "c")
    assert cli("resume", "c", f"{house}:agent", "--all").exit_code == 0
    cli("run", "hello", "--agent", f"{house}:agent", "--conversation", "c")
    return house


def test_a_changed_agent_is_compared_with_itself_without_its_advisors(cli: Cli, house: str) -> None:
    done = cli("replay", "c", "--turn", "1", "--advisors", f"{house}:better")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert "Recorded: 2 answers of the model, 1 result of tools." in lines
    assert f"{house}:better without its advisors: completed, 2 model calls" in lines
    assert f"{house}:better: completed, 2 model calls" in lines
    at = lines.index("model call 1, instructions")
    assert lines[at + 1] == "  + Be polite."
    assert "  + temperature: 0.5" in lines
    assert "secret" not in done.stdout
    assert "end, answer" not in lines
    assert "Not in the log, and so not replayed" in done.stdout


@pytest.mark.parametrize("name", ["advisors", "advisor", "made"])
def test_advisors_alone_are_put_on_the_base(cli: Cli, house: str, name: str) -> None:
    done = cli("replay", "c", "--base", f"{house}:agent", "--advisors", f"{house}:{name}")
    assert done.exit_code == 0
    assert "hello" in done.stdout.splitlines()[0]
    assert "+ Be polite." in done.stdout
    assert "tools" not in [line.partition(", ")[2] for line in done.stdout.splitlines()]


def test_a_replay_runs_no_tool_and_writes_nothing(cli: Cli, house: str, home: Path) -> None:
    before = cli("conversations", "show", "c", "--json").stdout
    did = (home / "did").read_text()
    cli("replay", "c", "--turn", "1", "--advisors", f"{house}:better")
    assert cli("conversations", "show", "c", "--json").stdout == before
    assert (home / "did").read_text() == did


def test_what_asks_more_than_was_recorded_ends_there_and_says_so(cli: Cli, house: str) -> None:
    done = cli("replay", "c", "--advisors", f"{house}:longing")
    assert f"{house}:longing: unrecorded, 2 model calls. The recording has 1 answer" in done.stdout
    assert "  + user: Longer." in done.stdout


def test_without_a_change_it_shows_what_the_base_is_sent(cli: Cli, house: str) -> None:
    done = cli("replay", "c", "--turn", "1", "--base", f"{house}:agent")
    assert "model call 2, messages" in done.stdout
    assert "    tool: pay says: paid 1 to Ann" in done.stdout
    assert "does not give the turn that was recorded" not in done.stdout
    assert "a plain agent: completed" in cli("replay", "c").stdout


def test_as_json_it_is_one_object(cli: Cli, house: str) -> None:
    done = cli("replay", "c", "--advisors", f"{house}:better", "--json")
    found = json.loads(done.stdout)
    assert found["as_recorded"] is True
    assert [run["status"] for run in found["runs"]] == ["completed", "completed"]
    assert {
        "where": "model call 1", "what": "instructions", "lines": ["+ Be polite."],
    } in found["differences"]  # fmt: skip


def test_an_agent_with_a_memory_of_its_own_is_read_there(cli: Cli, house: str) -> None:
    cli("run", "hello", "--agent", f"{house}:own", "--conversation", "mine")
    done = cli("replay", "mine", "--base", f"{house}:own", "--advisors", f"{house}:advisors")
    assert done.exit_code == 0
    assert "+ Be polite." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("c", "--turn", "7"), 2, "There is no turn '7'"),
        (("nobody's",), 1, "There is no conversation"),
        (("c", "--advisors", "{house}:TILL"), 2, "has no 'TILL'"),
        (("c", "--advisors", "nowhere:at"), 2, "names no agent and no advisors"),
        (("c", "--advisors", "{house}:Path"), 2, "name an Agent, an advisor or a list"),
        (("c", "--base", "{house}:advisors"), 2, "the base is an agent"),
        (("c", "--base", "{house}:diary"), 2, "diary keeps conversations in a way of its own"),
        (("c", "--owner", "ann"), 1, "There is no conversation"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    cli: Cli, house: str, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = cli("replay", *(one.replace("{house}", house) for one in arguments))
    assert done.exit_code == code
    assert says in done.stderr
