"""Plain objects before and after: who is asked, in which order, and who hears how it ended."""

import asyncio
import contextlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Agent, ConfigError, assistant
from retinue.advisors import Interceptors, Validate
from retinue.chains import OnionWarning
from retinue.models import Scripted
from retinue.models.scripted import call
from tests.advisors.talking import WAYS, Way, by_parent, soon
from tests.agent.reading import read


class Noted:
    """Writes down what it is asked, and does what it is told.

    Args:
        did: maps a method to what it gives, or to the error that it raises.
    """

    def __init__(self, name: str, log: list[str], order: float | None = None, **did: Any) -> None:
        self.name, self.order, self._log, self._did = name, order, log, did

    def _do(self, method: str) -> Any:
        self._log.append(f"{self.name} {method}")
        outcome = self._did.get(method)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def before_request(self, request: Any) -> Any:
        outcome = self._do("before")
        return outcome(request) if callable(outcome) else outcome

    def after_response(self, request: Any, response: Any) -> Any:
        outcome = self._do("after")
        return outcome(response) if callable(outcome) else outcome

    def on_error(self, request: Any, error: Exception) -> Any:
        outcome = self._do("error")
        return outcome(request) if callable(outcome) else outcome

    def on_cancel(self, request: Any) -> Any:
        return self._do("cancel")


class Later(Noted):
    """The same, asynchronously."""

    async def before_request(self, request: Any) -> Any:
        await asyncio.sleep(0)
        return super().before_request(request)

    async def after_response(self, request: Any, response: Any) -> Any:
        await asyncio.sleep(0)
        return super().after_response(request, response)

    async def on_error(self, request: Any, error: Exception) -> Any:
        await asyncio.sleep(0)
        return super().on_error(request, error)

    async def on_cancel(self, request: Any) -> Any:
        await asyncio.sleep(0)
        return super().on_cancel(request)


def three(log: list[str], **middle: Any) -> list[Noted]:
    """Given out of order: the second is told what to do."""
    return [Noted("c", log, 30), Later("b", log, 20, **middle), Noted("a", log, 10)]


PER = pytest.mark.parametrize("per", ["turn", "call"])


@PER
@pytest.mark.parametrize("way", WAYS)
async def test_before_in_ascending_and_after_in_descending_order(way: Way, per: Any) -> None:
    log: list[str] = []
    agent = Agent(Scripted("hi"), advisors=[Interceptors(three(log), per=per)])
    assert (await way(agent, "Go.")).text == "hi"
    assert log == ["a before", "b before", "c before", "c after", "b after", "a after"]


@given(orders=st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_equal_orders_keep_their_places(orders: list[int]) -> None:
    log: list[str] = []
    given = [Noted(f"{order} {at}", log, order) for at, order in enumerate(orders)]
    Agent(Scripted("hi"), advisors=[Interceptors(given)]).run_sync("Go.")
    expected = [f"{order} {at}" for order, at in sorted((o, at) for at, o in enumerate(orders))]
    assert log == [f"{name} before" for name in expected] + [
        f"{name} after" for name in reversed(expected)
    ]


async def test_per_turn_runs_once_and_per_call_for_each_model_call() -> None:
    log: list[str] = []
    model = Scripted(call("none"), "hi")
    turn = Interceptors([Noted("turn", log)])
    calls = Interceptors([Noted("call", log)], per="call")
    await Agent(model, advisors=[turn, calls]).run("Go.")
    assert log == [
        "turn before", "call before", "call after", "call before", "call after", "turn after",
    ]  # fmt: skip


@PER
@pytest.mark.parametrize("way", [*WAYS, by_parent])
@pytest.mark.behaviour("B-ON-7")
async def test_what_they_change_goes_in_and_comes_out(way: Way, per: Any) -> None:
    def aside(request: Any) -> Any:
        more = tuple(m.with_text(m.text + " Please.") for m in request.messages)
        return request.with_(messages=more)

    def louder(response: Any) -> Any:
        return response.with_(message=assistant(response.text.upper()))

    model = Scripted("hi")
    agent = Agent(model, advisors=[Interceptors(three([], before=aside, after=louder), per=per)])
    result = await way(agent, "Go.")
    assert model.requests[0].messages[-1].text.endswith(" Please.")
    if way is by_parent:
        assert result.messages[2].tool_results[0].text == "HI"
    else:
        assert result.text == "HI"


@PER
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.behaviour("B-ON-4")
async def test_an_answer_instead_skips_what_is_inside_and_names_who_gave_it(
    way: Way, per: Any
) -> None:
    log: list[str] = []
    model = Scripted("never")
    inside = three(log, before=lambda request: request.respond("kept", reason="I knew."))
    result = await way(Agent(model, advisors=[Interceptors(inside, per=per)]), "Go.")
    assert (result.text, result.blocked_by, result.reason) == ("kept", "b", "I knew.")
    assert log == ["a before", "b before", "b after", "a after"]
    assert model.requests == []


@PER
@pytest.mark.parametrize("way", WAYS)
async def test_a_refusal_ends_the_turn_as_blocked(way: Way, per: Any) -> None:
    def refuse(request: Any) -> Any:
        return request.refuse("Not today.")

    inside = Interceptors(three([], before=refuse), per=per)
    result = await way(Agent(Scripted("never"), advisors=[inside]), "Go.")
    assert (result.status, result.blocked_by, result.reason) == ("blocked", "b", "Not today.")


@PER
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("method", "log"),
    [
        ("before", ["a before", "b before", "a error"]),
        ("after", ["a before", "b before", "c before", "c after", "b after", "a error"]),
    ],
)
@pytest.mark.behaviour("B-ON-13")
async def test_an_error_names_its_interceptor_and_those_let_in_before_hear_of_it(
    way: Way, per: Any, method: str, log: list[str]
) -> None:
    heard: list[str] = []
    error = LookupError("no")
    agent = Agent(Scripted("hi"), advisors=[Interceptors(three(heard, **{method: error}), per=per)])
    with pytest.raises(LookupError) as caught:
        await way(agent, "Go.")
    assert caught.value is error
    assert "of the interceptor b" in error.__notes__[0]
    assert heard == log


@PER
@pytest.mark.parametrize("way", WAYS)
async def test_an_error_inside_can_be_answered_and_those_outside_see_an_answer(
    way: Way, per: Any
) -> None:
    log: list[str] = []
    inside = three(log, error=lambda request: request.respond("Sorry."))
    result = await way(
        Agent(Scripted(LookupError("no")), advisors=[Interceptors(inside, per=per)]), "Go."
    )
    assert result.text == "Sorry."
    assert log == ["a before", "b before", "c before", "c error", "b error", "a after"]


async def test_an_error_in_on_error_takes_its_place_and_keeps_the_first_behind_it() -> None:
    log: list[str] = []
    agent = Agent(
        Scripted(LookupError("first")),
        advisors=[Interceptors(three(log, error=KeyError("second")))],
    )
    with pytest.raises(KeyError, match="second") as caught:
        await agent.run("Go.")
    assert isinstance(caught.value.__context__, LookupError)
    assert "on_error of the interceptor b" in caught.value.__notes__[0]
    assert log[-3:] == ["c error", "b error", "a error"]


@PER
async def test_a_cancel_is_told_to_all_that_were_let_in_and_goes_on(
    per: Any, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[str] = []
    asked = asyncio.Event()

    async def hang(request: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(
        Scripted(hang), advisors=[Interceptors(three(log, cancel=KeyError("oh")), per=per)]
    )
    running = asyncio.create_task(agent.run("Go."))
    await soon(asked.wait())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(running)
    assert log == ["a before", "b before", "c before", "c cancel", "b cancel", "a cancel"]
    assert "The interceptor b failed in on_cancel." in caplog.text


async def test_a_turn_that_its_reader_leaves_is_cancelled_for_them_too() -> None:
    log: list[str] = []
    asked = asyncio.Event()

    async def hang(request: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(Scripted(hang), advisors=[Interceptors(three(log))])
    turn = agent.stream("Go.")
    reading = asyncio.create_task(read(turn))
    await soon(asked.wait())
    turn.cancel()
    await soon(reading)
    assert turn.outcome is not None
    assert turn.outcome.status == "cancelled"
    assert log[-3:] == ["c cancel", "b cancel", "a cancel"]


ENDS = st.sampled_from(["pass", "answer", "raise before", "raise after", "answer error"])


@given(ends=st.lists(ENDS, min_size=1, max_size=5), fails=st.booleans())
def test_whoever_was_let_in_hears_the_end_once_and_nobody_else_does(
    ends: Sequence[str], fails: bool
) -> None:
    log: list[str] = []
    does = {
        "pass": {},
        "answer": {"before": lambda request: request.respond("kept")},
        "raise before": {"before": LookupError("before")},
        "raise after": {"after": LookupError("after")},
        "answer error": {"error": lambda request: request.respond("sorry")},
    }
    given = [Noted(str(at), log, **does[end]) for at, end in enumerate(ends)]
    model = Scripted(LookupError("model") if fails else "hi")
    with contextlib.suppress(LookupError):
        Agent(model, advisors=[Interceptors(given)]).run_sync("Go.")
    let_in = [
        line[0] for line in log if line.endswith("before") and ends[int(line[0])] != "raise before"
    ]
    heard = [line[0] for line in log if not line.endswith("before")]
    assert heard == let_in[::-1]


async def test_methods_may_be_left_out() -> None:
    seen: list[Any] = []
    only_after = SimpleNamespace(after_response=lambda q, r: seen.append(r.text))
    only_error = SimpleNamespace(on_error=lambda q, e: None)
    await Agent(Scripted("hi"), advisors=[Interceptors([only_error, only_after])]).run("Go.")
    assert seen == ["hi"]


async def test_each_is_given_the_request_as_it_passed_it_on() -> None:
    seen: list[Any] = []

    class Tagging:
        def before_request(self, request: Any) -> Any:
            return request.with_context(tag="mine")

        def after_response(self, request: Any, response: Any) -> None:
            seen.append((request.context["tag"], response.context["tag"]))

    await Agent(Scripted("hi"), advisors=[Interceptors([Tagging()])]).run("Go.")
    assert seen == [("mine", "mine")]


async def test_inside_a_validation_they_run_for_each_attempt() -> None:
    log: list[str] = []
    agent = Agent(Scripted("x", "1"), advisors=[Validate(int), Interceptors([Noted("a", log)])])
    assert (await agent.run("Go.")).output == 1
    assert log == ["a before", "a after"] * 2


def test_one_that_answers_errors_says_so_and_is_warned_about_inside_a_validation() -> None:
    soften = Noted("soften", [])
    soften.traits = frozenset({"swallows"})  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.warns(OnionWarning, match="Validate stands outside Interceptors"):
        Agent(Scripted("hi"), advisors=[Validate(int), Interceptors([soften])])
    Agent(Scripted("hi"), advisors=[Interceptors([soften]), Validate(int)])


async def test_a_wrong_kind_of_answer_names_who_gave_it() -> None:
    agent = Agent(Scripted("hi"), advisors=[Interceptors([Noted("a", [], before="yes")])])
    with pytest.raises(ConfigError, match="before_request of the interceptor a gave str; it must"):
        await agent.run("Go.")


SAME = Noted("a", [])


@pytest.mark.parametrize(
    ("given", "per", "told"),
    [
        ([], "turn", "would do nothing"),
        ([SAME], "round", "per='round'"),
        ([SAME, SAME], "turn", "a stands in the list twice"),
        ([Noted], "turn", "Interceptor 1 is <class"),
        ([None], "turn", "Interceptor 1 is None"),
        ([object()], "turn", r"1 \(object\) has none of the methods before_request"),
        ([SimpleNamespace(before_request=lambda: 1)], "turn", r"shape before_request\(request\)"),
        ([SimpleNamespace(on_error=lambda e: 1)], "turn", r"shape on_error\(request, error\)"),
        ([SimpleNamespace(on_cancel="x")], "turn", r"shape on_cancel\(request\)"),
        ([Noted("a", [], "first")], "turn", "order='first'"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_interceptor_is_refused_by_name(given: Any, per: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Interceptors(given, per=per)
