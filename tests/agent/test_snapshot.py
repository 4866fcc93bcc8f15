"""What a pause is kept as: one document, versioned, sealed where it leaves the store (R-HITL-2)."""

from pathlib import Path

import msgspec
import pytest

from retinue import Advisor, Agent, Approve, ConfigError, Image, Retry, Slot, ToolReturn, tool
from retinue.chains import CallNext, TurnRequest, TurnResponse
from retinue.chains.snapshot import FORMAT, Snapshot
from retinue.errors import SnapshotError
from retinue.messages import Text, Thinking
from retinue.models.scripted import Scripted, call
from tests.agent.till import Till, asking, later
from tests.agent.toolbox import told

pytestmark = pytest.mark.rule("R-HITL-2")


async def test_a_state_that_json_cannot_hold_fails_the_turn_by_the_name_of_its_slot() -> None:
    till = Till()
    agent = asking(Scripted(call("pay", amount=1)), till)
    with pytest.raises(SnapshotError, match="the slot 'lock' holds object"):
        await agent.run("Pay.", state={"lock": object()})


KEY = "a secret of the server"


async def test_a_sealed_snapshot_is_used_only_as_it_was_sealed() -> None:
    till = Till()
    result = await asking(Scripted(call("pay", amount=1)), till).run("Pay.")
    assert result.snapshot is not None
    sealed = result.snapshot.seal(KEY)
    assert Snapshot.unseal(sealed, KEY) == later(result)
    with pytest.raises(SnapshotError, match="changed, or signed with another key"):
        Snapshot.unseal(sealed.replace(b'"amount":1', b'"amount":9'), KEY)
    with pytest.raises(SnapshotError, match="changed, or signed with another key"):
        Snapshot.unseal(sealed, KEY + "!")
    with pytest.raises(ConfigError, match="16 or more"):
        result.snapshot.seal("short")
    with pytest.raises(SnapshotError, match="no sealed snapshot"):
        Snapshot.unseal(b"{}", KEY)


@pytest.mark.parametrize(
    "forged",
    [
        '{"format": 1, "signature": "\u00e9", "snapshot": {}}',
        "\ud800",
        b'{"format": 1, "signature": "", "snapshot": ' + b"[" * 100_000,
        b'{"format": 1, "signature": "\xff", "snapshot": {}}',
    ],
    ids=["signature", "surrogate", "depth", "bytes"],
)
def test_whatever_comes_in_place_of_a_snapshot_is_refused_in_one_way(forged: bytes | str) -> None:
    with pytest.raises(SnapshotError):
        Snapshot.unseal(forged, KEY)
    with pytest.raises(SnapshotError):
        Snapshot.load(forged)


async def test_what_json_cannot_hold_of_a_sub_agents_context_stays_behind_too() -> None:
    class Notes(Advisor):
        async def turn(
            self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
        ) -> TurnResponse:
            return await call_next(request.with_context(handle=object(), note="kept"))

    till = Till()
    child = asking(Scripted(call("pay", amount=1)), till, advisors=[Notes()], name="child")
    parent = Agent(Scripted(call("child", task="Pay.")), tools=[child.as_tool()])
    result = await parent.run("Pay.")
    assert result.status == "paused"
    (inner,) = later(result).nested.values()
    assert inner.context == {"note": "kept"}


def test_a_snapshot_of_a_later_format_asks_for_an_upgrade() -> None:
    with pytest.raises(SnapshotError, match=r"format 2, .* reads format 1; upgrade"):
        Snapshot.load(b'{"format": 2, "turn": "t"}')
    with pytest.raises(SnapshotError, match="no snapshot"):
        Snapshot.load(b"[]")


def _text(path: Path) -> str:
    return path.read_text("utf-8")


FORMATS = sorted((Path(__file__).parent / "snapshots").glob("format-*.json"))


def travel(outer: Scripted, inner: Scripted, did: list[str]) -> Agent:
    """The agent of the kept snapshots: a sub-agent of it has paused, and its disk was full."""

    @tool(sensitive=True)
    def pay(amount: int) -> str:
        """Pays."""
        did.append(f"pay {amount}")
        return f"paid {amount}"

    @tool
    def note(text: str) -> ToolReturn:
        """Notes."""
        did.append(f"note {text}")
        return ToolReturn("noted", writes={"notes": [text]})

    @tool
    def write(name: str) -> str:
        """Writes."""
        did.append(f"write {name}")
        return f"wrote {name}"

    child = Agent(inner, name="child", tools=[pay], gate="sensitive")
    slots = [Slot("notes", reducer=lambda old, new: old + new, default=[])]
    return Agent(outer, tools=[child.as_tool(), note, write], gate="sensitive", slots=slots)


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.stem)
async def test_a_pause_of_every_format_can_still_be_gone_on_with(path: Path) -> None:
    did: list[str] = []
    outer, inner = Scripted("All done."), Scripted("The child has paid.")
    paused = Snapshot.load(_text(path))
    assert [(one.tool, one.kind) for one in paused.pending] == [
        ("pay", "approval"), ("write", "environment"),
    ]  # fmt: skip
    result = await travel(outer, inner, did).resume(
        paused, {paused.pending[0].id: Approve({"amount": 6}), paused.pending[1].id: Retry()}
    )
    assert (result.text, result.rounds, result.conversation) == ("All done.", 2, "c-1")
    assert sorted(did) == ["pay 6", "write b"]
    assert told(result) == [(True, "The child has paid."), (True, "noted"), (True, "wrote b")]
    assert result.state["notes"] == ["a"]
    assert result.context["who"] == "ada"
    assert (result.usage.input, result.usage.output) == (30, 9)
    question, answer = outer.requests[0].messages[:2]
    assert [type(part) for part in question.parts] == [Text, Image]
    assert answer.parts[0] == Thinking("I book.", signature="proof", provider="scripted")


def test_what_is_written_today_is_of_the_newest_format_kept_here() -> None:
    newest = msgspec.json.decode(FORMATS[-1].read_bytes())
    assert newest["format"] == FORMAT
    assert newest.keys() == set(Snapshot.__struct_fields__)
