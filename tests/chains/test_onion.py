"""Layers composed round a core, with no agent: order, re-entry, blocking, errors."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from retinue.chains import compose
from retinue.errors import ConfigError


class Asked(Struct, frozen=True):
    text: str = "?"


class Answer(Struct, frozen=True):
    text: str
    blocked_by: str | None = None
    refused: bool = False

    def with_(self, **changes: Any) -> "Answer":
        return structs.replace(self, **changes)


async def core(request: Any) -> Answer:
    return Answer(f"<{request.text}>")


def wrapping(name: str, log: list[str]) -> tuple[str, Any]:
    async def hook(request: Asked, call_next: Any) -> Answer:
        log.append(f"+{name}")
        try:
            return await call_next(request)
        finally:
            log.append(f"-{name}")

    return name, hook


@pytest.mark.rule("R-ONION-4")
def test_no_layers_are_the_core_itself() -> None:
    assert compose([], core, Answer) is core


@pytest.mark.rule("R-ONION-7")
async def test_a_layer_that_refuses_what_came_of_its_inner_ones_is_named_too() -> None:
    async def guard(request: Asked, call_next: Any) -> Answer:
        await call_next(request)
        return Answer("not that", refused=True)

    async def outside(request: Asked, call_next: Any) -> Answer:
        return await call_next(request)

    answer = await compose([("outside", outside), ("guard", guard)], core, Answer)(Asked())
    assert answer.blocked_by == "guard"


@pytest.mark.rule("R-ONION-2")
@pytest.mark.behaviour("B-ON-1")
async def test_the_first_of_the_list_is_the_outermost() -> None:
    log: list[str] = []
    await compose([wrapping("a", log), wrapping("b", log), wrapping("c", log)], core, Answer)(
        Asked()
    )
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]


@pytest.mark.rule("R-ONION-1")
@pytest.mark.behaviour("B-ON-2")
async def test_an_outer_layer_sees_what_an_inner_one_made_of_the_answer() -> None:
    seen: list[str] = []

    async def watch(request: Asked, call_next: Any) -> Answer:
        answer = await call_next(request)
        seen.append(answer.text)
        return answer

    async def shout(request: Asked, call_next: Any) -> Answer:
        answer = await call_next(structs.replace(request, text="hush"))
        return answer.with_(text=answer.text.upper())

    answer = await compose([("watch", watch), ("shout", shout)], core, Answer)(Asked())
    assert seen == [answer.text] == ["<HUSH>"]


@pytest.mark.rule("R-ONION-3")
@pytest.mark.parametrize("times", [0, 1, 3])
async def test_a_layer_may_go_inward_any_number_of_times(times: int) -> None:
    log: list[str] = []

    async def repeat(request: Asked, call_next: Any) -> Answer:
        answers = [await call_next(request) for _ in range(times)]
        return answers[-1] if answers else Answer("none")

    layers = [wrapping("outer", log), ("repeat", repeat), wrapping("inner", log)]
    answer = await compose(layers, core, Answer)(Asked())
    assert log == ["+outer", *["+inner", "-inner"] * times, "-outer"]
    assert answer.blocked_by == (None if times else "repeat")


@pytest.mark.rule("R-ONION-3")
async def test_a_layer_may_go_inward_several_times_at_once() -> None:
    meeting = asyncio.Barrier(3)

    async def thrice(request: Asked, call_next: Any) -> Answer:
        answers = await asyncio.gather(*(call_next(Asked(str(n))) for n in range(3)))
        return Answer("".join(answer.text for answer in answers))

    async def meet(request: Asked, call_next: Any) -> Answer:
        async with asyncio.timeout(5):
            await meeting.wait()
        return await call_next(request)

    answer = await compose([("thrice", thrice), ("meet", meet)], core, Answer)(Asked())
    assert answer == Answer("<0><1><2>")


@pytest.mark.rule("R-ONION-7")
async def test_who_answers_without_going_inward_is_named_and_outer_layers_see_it() -> None:
    seen: list[str | None] = []

    async def watch(request: Asked, call_next: Any) -> Answer:
        answer = await call_next(request)
        seen.append(answer.blocked_by)
        return answer

    async def guard(request: Asked, call_next: Any) -> Answer:
        return Answer("no")

    async def never(request: Asked, call_next: Any) -> Answer:
        raise AssertionError("an inner layer ran")

    answer = await compose([("watch", watch), ("guard", guard), ("never", never)], core, Answer)(
        Asked()
    )
    assert answer == Answer("no", blocked_by="guard")
    assert seen == ["guard"]


@pytest.mark.rule("R-ONION-7")
async def test_who_blocks_only_the_second_time_is_named_then_and_not_before() -> None:
    answers: list[Answer] = []
    closed = False

    async def again(request: Asked, call_next: Any) -> Answer:
        answers.append(await call_next(request))
        answers.append(await call_next(request))
        return answers[0]

    async def once(request: Asked, call_next: Any) -> Answer:
        nonlocal closed
        if closed:
            return Answer("used up")
        closed = True
        return await call_next(request)

    answer = await compose([("again", again), ("once", once)], core, Answer)(Asked())
    assert [one.blocked_by for one in answers] == [None, "once"]
    assert answer.blocked_by is None


@pytest.mark.rule("R-ONION-7")
async def test_a_layer_that_answers_after_an_inner_error_blocked_nothing() -> None:
    async def fail(request: Any) -> Answer:
        raise OSError("down")

    async def soften(request: Asked, call_next: Any) -> Answer:
        try:
            return await call_next(request)
        except OSError:
            return Answer("sorry")

    assert await compose([("soften", soften)], fail, Answer)(Asked()) == Answer("sorry")


@pytest.mark.rule("R-ONION-7")
async def test_a_layer_may_name_another_one_as_the_blocker() -> None:
    async def front(request: Asked, call_next: Any) -> Answer:
        return Answer("no", blocked_by="policy 7")

    assert (await compose([("front", front)], core, Answer)(Asked())).blocked_by == "policy 7"


@pytest.mark.rule("R-ONION-5")
@pytest.mark.behaviour("B-ON-13")
async def test_an_error_passes_every_layer_unwrapped_and_each_finally_runs_once() -> None:
    log: list[str] = []
    error = ValueError("mine")

    async def fail(request: Asked, call_next: Any) -> Answer:
        raise error

    layers = [wrapping("a", log), wrapping("b", log), ("fail", fail)]
    with pytest.raises(ValueError, match="mine") as caught:
        await compose(layers, core, Answer)(Asked())
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert log == ["+a", "+b", "-b", "-a"]


@pytest.mark.parametrize("wrong", [None, "text", {"text": "x"}])
async def test_a_layer_that_returns_no_response_is_named(wrong: object) -> None:
    async def forgetful(request: Asked, call_next: Any) -> Any:
        await call_next(request)
        return wrong

    with pytest.raises(ConfigError, match=f"layer forgetful returned {type(wrong).__name__}"):
        await compose([("forgetful", forgetful)], core, Answer)(Asked())


@pytest.mark.rule("R-ONION-2", "R-ONION-3")
@given(st.lists(st.integers(0, 3), max_size=4))
def test_every_layer_runs_as_often_as_those_outside_it_go_inward(goes: list[int]) -> None:
    counts = [0] * (len(goes) + 1)

    def layer(at: int, times: int) -> tuple[str, Any]:
        async def hook(request: Asked, call_next: Any) -> Answer:
            counts[at] += 1
            answer = Answer("own")
            for _ in range(times):
                answer = await call_next(request)
            return answer

        return str(at), hook

    async def counted(request: Any) -> Answer:
        counts[-1] += 1
        return Answer("core")

    layers = [layer(at, times) for at, times in enumerate(goes)]
    answer = asyncio.run(_awaited(compose(layers, counted, Answer)(Asked())))
    expected = [1]
    for times in goes:
        expected.append(expected[-1] * times)
    assert counts == expected
    blocker = next((str(at) for at, times in enumerate(goes) if times == 0), None)
    assert answer.blocked_by == blocker


async def _awaited(answer: Any) -> Any:
    return await answer
