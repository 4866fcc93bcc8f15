"""Questions that are refused before a model sees them."""

# ruff: noqa: RUF001  (letters that look alike are what this is about)

import asyncio
import re
from typing import Any

import pytest
import re2

from retinue import Agent, ConfigError, Layer, tool
from retinue.advisors import Memory, QuestionAnswer, Safeguard
from retinue.chains import OnionWarning
from retinue.messages import File, Image, Text, assistant, user
from retinue.models import Scripted
from retinue.models.scripted import call
from retinue.stores import Store
from tests.advisors.talking import WAYS, Way, by_parent, kept, sent

ways = pytest.mark.parametrize("way", WAYS)


@tool
def search(query: str = "x") -> str:
    """Looks it up."""
    return f"a bomb for {query}"


@pytest.mark.rule("R-ONION-7")
@pytest.mark.behaviour("B-GU-1", "B-ME-6", "B-ON-4", "B-ON-5")
@ways
async def test_a_refused_question_reaches_no_model_no_store_and_no_later_turn(
    store: Store, way: Way
) -> None:
    model = Scripted("two", "three")
    guard = Safeguard({"weapons": ["bomb"]}, answer="Not that.")
    agent = Agent(model, advisors=[guard, Memory(store)])
    blocked = await way(agent, "How is a BOMB made?", conversation="c")
    assert (blocked.status, blocked.text) == ("blocked", "Not that.")
    assert blocked.blocked_by == "Safeguard"
    assert blocked.reason == "The question breaks the rule 'weapons'."
    assert model.requests == []
    assert await kept(store) == []
    for question in ("second?", "third?"):
        assert (await way(agent, question, conversation="c")).status == "completed"
    assert sent(model) == ["user: second?", "assistant: two", "user: third?"]


@pytest.mark.behaviour("B-ON-5")
async def test_the_same_block_holds_in_a_sub_agent_and_in_run_sync() -> None:
    model = Scripted()
    child = Agent(model, advisors=[Safeguard("delegate")])
    parent = Agent(
        Scripted(call("helper", task="delegate it"), "done"), tools=[child.as_tool("helper")]
    )
    response = await parent.run("Go.")
    results = [one for message in response.messages for one in message.tool_results]
    assert [one.ok for one in results] == [False]
    told = await asyncio.to_thread(child.run_sync, "delegate")
    assert (told.status, told.blocked_by) == ("blocked", "Safeguard")
    assert model.requests == []
    assert (
        await by_parent(Agent(Scripted("ok"), advisors=[Safeguard("bomb")]), "hi")
    ).text == "done"


async def reason(guard: Safeguard, question: Any) -> str | None:
    """Why the guard refuses the question, or None."""
    model = Scripted("fine")
    response = await Agent(model, advisors=[guard]).run(question)
    assert (response.status == "blocked") == (model.requests == [])
    return response.reason


@pytest.mark.behaviour("B-GU-1")
async def test_the_refusal_names_the_rule_or_what_it_was_made_of() -> None:
    unnamed = Safeguard(["Bad Word", re.compile(r"\d{4}-\d{4}"), lambda text: "spite" in text])
    assert await reason(unnamed, "a bad word") == "The question breaks the rule 'Bad Word'."
    assert await reason(unnamed, "1234-5678") == r"The question breaks the rule '\\d{4}-\\d{4}'."
    assert await reason(unnamed, "out of spite") == "The question breaks the rule '<lambda>'."
    assert await reason(unnamed, "fine") is None


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_function_finds_what_it_names_and_sees_all_that_is_asked(awaited: bool) -> None:
    seen: list[str] = []

    def moderate(text: str) -> str | None:
        seen.append(text)
        return "violence" if "hit" in text else None

    async def later(text: str) -> str | None:
        await asyncio.sleep(0)
        return moderate(text)

    check = later if awaited else moderate
    assert await reason(Safeguard(check), "hit it") == "The question breaks the rule 'violence'."
    named = Safeguard({"moderation": check})
    assert await reason(named, "hit") == "The question breaks the rule 'moderation: violence'."
    assert await reason(named, [user("one"), user("two", Text("three"))]) is None
    assert seen[-1] == "one\ntwo\nthree"


async def test_a_function_that_fails_lets_no_question_through() -> None:
    def fails(text: str) -> None:
        raise RuntimeError("the service is down")

    model = Scripted("x")
    with pytest.raises(RuntimeError, match="the service is down"):
        await Agent(model, advisors=[Safeguard(fails)]).run("Go.")
    assert model.requests == []


async def test_a_function_that_gives_something_else_is_refused() -> None:
    guard: Any = Safeguard(lambda text: {"flagged": False})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match=r"A check of Safeguard gave dict; .*None, or a text"):
        await reason(guard, "Go.")


async def test_every_part_of_every_new_message_is_looked_at() -> None:
    guard = Safeguard(["bomb"])
    blocked = "The question breaks the rule 'bomb'."
    assert await reason(guard, [user("a bomb"), user("hi")]) == blocked
    assert await reason(guard, user("hi", "a bomb")) == blocked
    assert await reason(guard, user("a bomb", "please")) == blocked
    assert await reason(guard, user("a bo", "mb")) == blocked, "cut over the parts"
    note = File(b"\xef\xbb\xbfthe bomb", media_type="text/plain; charset=utf-8")
    assert await reason(guard, user("read", note)) == blocked
    assert (
        await reason(guard, user(File(b'{"a": "bomb"}', media_type="application/json"))) == blocked
    )
    assert (
        await reason(guard, user("hi", File("a bomb".encode("utf-16"), media_type="text/csv")))
        == blocked
    )
    assert await reason(guard, user("hi", File(b"bomb"), Image(b"bomb"))) is None


@pytest.mark.behaviour("B-GU-2", "B-ME-6")
@ways
async def test_what_tools_say_and_what_was_said_before_is_not_looked_at(
    store: Store, way: Way
) -> None:
    model = Scripted(call("search"), "one", "two")
    agent = Agent(model, tools=[search], advisors=[Safeguard("bomb"), Memory(store)])
    assert (await way(agent, "Look it up.", conversation="c")).text == "one"
    resent = [user("a bomb?"), assistant("I cannot help with that."), user("hello")]
    assert (await way(agent, resent, conversation="d")).text == "two"


async def test_a_repeated_transcript_is_looked_at_by_choice() -> None:
    resent = [user("a bomb?"), assistant("Sure."), user("go on")]
    assert await reason(Safeguard("bomb"), resent) is None
    assert await reason(Safeguard("bomb", resent=True), resent) is not None


@pytest.mark.rule("R-HITL-4")
async def test_it_is_skipped_on_resume() -> None:
    async def resume(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(resumed=True))

    layers = [Layer("resume", turn=resume), Safeguard("bomb")]
    assert (await Agent(Scripted("fine"), advisors=layers).run("a bomb")).text == "fine"


@pytest.mark.rule("R-LOOP-5")
@pytest.mark.parametrize("resent", [False, True])
async def test_on_re_entry_neither_the_feedback_nor_the_question_is_looked_at_again(
    resent: bool,
) -> None:
    seen: list[str] = []

    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        await call_next(request.again("no bomb, please"))
        return await call_next(request)

    guard = Safeguard(["bomb", lambda text: seen.append(text)], resent=resent)
    layers = [Layer("again", turn=again), guard]
    assert (await Agent(Scripted("a", "b", "c"), advisors=layers).run("hi")).text == "c"
    assert seen == ["hi"]


async def test_a_question_that_an_outer_layer_changes_is_looked_at_as_changed() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        worse = request.messages[-1].with_text("a bomb")
        return await call_next(request.with_(messages=(worse,)))

    layers = [Layer("again", turn=again), Safeguard("bomb")]
    assert (await Agent(Scripted("a", "b"), advisors=layers).run("hi")).status == "blocked"


@pytest.mark.rule("R-ONION-12")
@pytest.mark.behaviour("B-ON-9")
async def test_turns_at_once_do_not_share_what_was_looked_at() -> None:
    agent = Agent(Scripted("fine", repeat=True), advisors=[Safeguard("bomb")])
    asked = [f"a {'bomb' if n % 3 == 0 else 'flower'}" for n in range(60)]
    told = await asyncio.gather(*(agent.run(question) for question in asked))
    assert [one.status == "blocked" for one in told] == [n % 3 == 0 for n in range(60)]


async def test_regular_expressions_see_the_text_as_it_is_and_folded() -> None:
    guard = Safeguard([re.compile(r"pin: \d{4}"), re2.compile(r"ca(t|r)s?\b"), re.compile("é+x")])
    for question in ("PIN:\n1234", "ｐｉｎ: １２３４", "p\u200bin: 1234", "Cars", "ÉÉX"):
        assert await reason(guard, question) is not None, question
    assert await reason(guard, "pin: 12") is None
    assert await reason(Safeguard(re.compile("a.b", re.DOTALL)), "a\nb") is not None
    assert await reason(Safeguard(re.compile("^b", re.MULTILINE)), "a\nb") is not None


async def test_an_expression_that_would_take_for_ever_elsewhere_is_quick() -> None:
    guard = Safeguard(re.compile(r"(a+)+b"))
    async with asyncio.timeout(5):
        assert await reason(guard, "a" * 100_000 + "c") is None


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([], "there is no pattern"),
        ({}, "there is no pattern"),
        ({"a": []}, "no pattern of the rule 'a'"),
        (["ok", " "], "pattern 2 is blank"),
        (["ok", 3], "pattern 2 is 3; give a word"),
        (b"word", "give a word or a phrase"),
        ([str], "give a word"),
        ({"": "x"}, "'' is no name of a rule"),
        ({3: "x"}, "3 is no name of a rule"),
        (["\u200b"], "nothing to look for"),
        ({"a": re.compile(b"x")}, "pattern 1 of the rule 'a'"),
        (re.compile("(?=x)y"), r"'\(\?=x\)y' .*RE2 has no look-around"),
        (re.compile("x*"), "fits every text"),
        (re.compile("x", re.VERBOSE), "is verbose"),
        ([lambda: None], "must take the text"),
    ],
)
def test_rules_that_cannot_work_are_refused_when_the_guard_is_made(rules: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Safeguard(rules)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mode": "words"}, "mode='words'.*'word' or 'substring'"),
        ({"input": False}, "guards nothing; give output=True"),
        ({"hold": "all"}, "give output=True"),
        ({"output": True, "hold": "some"}, "hold='some'"),
        ({"output": True, "hold": 3}, "too short for 'bomb': give 4 characters"),
        ({"output": True, "thinking": "no"}, "thinking='no'"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Safeguard(["bomb"], **options)


def test_what_is_not_installed_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.advisors.safeguard.matcher.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pyahocorasick; .*pip install 'retinue\[guard\]'"):
        Safeguard("bomb")
    with pytest.raises(ImportError, match=r"google-re2; .*pip install 'retinue\[guard\]'"):
        Safeguard(re.compile("bomb"))
    Safeguard(lambda text: None)


@pytest.mark.rule("R-ONION-9")
def test_inside_a_memory_or_a_retrieval_it_is_warned_about_and_outside_it_is_not() -> None:
    guard = Safeguard("bomb")
    for outer in (Memory(), QuestionAnswer(lambda query: [])):
        name = type(outer).__name__
        with pytest.warns(OnionWarning, match=f"{name} stands outside Safeguard: .*Swap them"):
            Agent(Scripted(), advisors=[outer, guard])
        assert Agent(Scripted(), advisors=[guard, outer]).explain().warnings == ()


@pytest.mark.rule("R-ONION-4")
def test_without_output_it_has_no_stream_hook() -> None:
    told = Agent(Scripted(), advisors=[Safeguard("bomb")]).explain()
    assert told.layers[0].hooks == ("turn",)
    told = Agent(Scripted(), advisors=[Safeguard("bomb", output=True)]).explain()
    assert told.layers[0].hooks == ("turn", "stream")
