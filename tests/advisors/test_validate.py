"""`Validate`: what is judged, how often it is asked again, what the model is told, how it ends."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, field_validator

from retinue import Agent, ConfigError, Layer, tool
from retinue.advisors import Memory, Validate
from retinue.chains import OnionWarning, Output
from retinue.errors import OutputError
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, by_parent, kept, layer, sent, strictly


class City(BaseModel):
    name: str
    size: Annotated[int, Field(ge=0)]

    @field_validator("name")
    @classmethod
    def is_a_name(cls, name: str) -> str:
        if not name.istitle():
            raise ValueError("a name begins with a capital")
        return name


OSLO = '{"name": "Oslo", "size": 7}'
WRONG = '{"name": "oslo", "size": -1}'
GIVEN = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "mail": {"type": "string", "format": "email"},
        "who": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/Person"}]},
    },
    "required": ["code", "mail", "who"],
    "$defs": {"Person": {"type": "object", "required": ["age"]}},
}
FITS = '{"code": "OSL", "mail": "a@b.no", "who": {"age": 3}}'


def feedback(model: Scripted, number: int = -1) -> str:
    """The last thing that the model was told."""
    return model.requests[number].messages[-1].text


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize(
    ("script", "calls"), [((OSLO,), 1), ((WRONG, OSLO), 2), (("Oslo.", WRONG, OSLO), 3)]
)
@pytest.mark.behaviour("B-VA-1")
async def test_the_model_is_asked_until_its_answer_fits(
    ask: Way, script: tuple[str, ...], calls: int
) -> None:
    model = Scripted(*script)
    result = await ask(Agent(model, advisors=[Validate(City)]), "where?")
    assert result.output == City(name="Oslo", size=7)
    assert (result.status, result.reason, len(model.requests)) == ("completed", None, calls)
    assert [request.output for request in model.requests] == [Output.of(City)] * calls
    strictly(model)


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize(("retries", "calls"), [(0, 1), (2, 3)])
@pytest.mark.behaviour("B-VA-1")
async def test_an_answer_that_never_fits_is_returned_and_says_so(
    ask: Way, retries: int, calls: int
) -> None:
    model = Scripted(WRONG, repeat=True)
    result = await ask(Agent(model, advisors=[Validate(City, retries=retries)]), "where?")
    assert (result.status, result.text, len(model.requests)) == ("completed", WRONG, calls)
    assert result.reason is not None
    assert f"after {calls} attempts" in result.reason
    with pytest.raises(OutputError):
        _ = result.output


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.behaviour("B-VA-1")
async def test_an_answer_that_never_fits_is_raised_by_choice(ask: Way) -> None:
    model = Scripted(WRONG, repeat=True)
    agent = Agent(model, advisors=[Validate(City, exhausted="raise")])
    with pytest.raises(OutputError, match="size: should be greater") as caught:
        await ask(agent, "where?")
    assert len(model.requests) == 3
    assert [problem.path for problem in caught.value.problems] == ["name", "size"]


async def test_it_repairs_the_answer_of_a_sub_agent_before_the_parent_sees_it() -> None:
    model = Scripted(WRONG, OSLO)
    result = await by_parent(Agent(model, advisors=[Validate(City)]), "?")
    told = [one.text for message in result.messages for one in message.tool_results]
    assert told == ['{"name":"Oslo","size":7}']
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("which", "lines"),
    [
        (
            "all",
            [
                '- name: a name begins with a capital, got "oslo"',
                "- size: should be greater than or equal to 0, got -1",
            ],
        ),
        ("first", ['- name: a name begins with a capital, got "oslo"']),
    ],
)
async def test_the_model_is_told_all_or_the_first_problem(which: Any, lines: list[str]) -> None:
    model = Scripted(WRONG, OSLO)
    await Agent(model, advisors=[Validate(City, problems=which)]).run("where?")
    told = feedback(model).splitlines()
    assert [line for line in told if line.startswith("-")] == lines


async def test_a_great_many_problems_are_not_all_told() -> None:
    model = Scripted(str(["x"] * 50).replace("'", '"'), "[1]")
    await Agent(model, advisors=[Validate(list[int])]).run("?")
    told = feedback(model).splitlines()
    assert len([line for line in told if line.startswith("- [")]) == 20
    assert "- and 30 more" in told


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.behaviour("B-VA-3")
@pytest.mark.parametrize(
    "wrapped",
    [
        f"```json\n{OSLO}\n```",
        f'<think>maybe {{"name": 1}}</think>{OSLO}',
        f"Here you are: {OSLO} Enjoy!",
        '{"name": "Oslo", "size": 7,}',
    ],
)
async def test_a_wrapping_round_the_json_costs_no_call(ask: Way, wrapped: str) -> None:
    model = Scripted(wrapped)
    result = await ask(Agent(model, advisors=[Validate(City)]), "where?")
    assert (result.output, result.text) == (City(name="Oslo", size=7), wrapped)


@pytest.mark.behaviour("B-VA-3")
async def test_null_and_a_bare_list_are_values_like_others() -> None:
    model = Scripted("null", OSLO, "null", f"[{OSLO}]", f"[{OSLO}]", OSLO)
    city, cities = City(name="Oslo", size=7), Validate(list[City])
    assert (await Agent(model, advisors=[Validate(City)]).run("?")).output == city
    assert "should be an object, got null" in feedback(model)
    assert (await Agent(model, advisors=[Validate(City | None)]).run("?")).output is None
    assert (await Agent(model, advisors=[cities]).run("?")).output == [city]
    assert (await Agent(model, advisors=[Validate(City)]).run("?")).output == city
    assert "should be an object, got [" in feedback(model)


@pytest.mark.behaviour("B-VA-5")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (FITS.replace("OSL", "oslo"), "code: should match the pattern ^[A-Z]{3}$"),
        (FITS.replace("a@b.no", "a"), "mail: should be of the format email"),
        (FITS.replace('{"age": 3}', "3"), "who: "),
        (FITS.replace("age", "years"), "who.age: is required"),
    ],
)
async def test_a_schema_given_as_data_is_enforced(wrong: str, told: str) -> None:
    model = Scripted(wrong, FITS)
    result = await Agent(model, advisors=[Validate(GIVEN)]).run("?")
    assert result.output == {"code": "OSL", "mail": "a@b.no", "who": {"age": 3}}
    assert told in feedback(model)


async def test_a_field_that_the_prompt_never_named_is_there_after_two_calls() -> None:
    def answer(request: Any) -> str:
        asked = request.messages[-1].text
        return '{"name": "Oslo", "size": 7}' if "size: is required" in asked else '{"name": "Oslo"}'

    model = Scripted(answer, answer)
    result = await Agent(model, advisors=[Validate(City)]).run("A city in Norway?")
    assert (result.output.size, len(model.requests)) == (7, 2)


# -- checks of one's own --------------------------------------------------------------------------


def short(text: str) -> str | None:
    return "it is longer than 5 characters" if len(text) > 5 else None


async def short_later(text: str) -> str | None:
    return short(text)


def short_or_raise(text: str) -> None:
    told = short(text)
    if told:
        raise ValueError(told)


@pytest.mark.parametrize("check", [short, short_later, short_or_raise])
@pytest.mark.parametrize("ask", WAYS)
async def test_a_check_judges_the_text_where_no_form_is_asked_for(ask: Way, check: Any) -> None:
    model = Scripted("much too long", "short")
    result = await ask(Agent(model, advisors=[Validate(check=check)]), "?")
    assert (result.text, result.output) == ("short", None)
    assert "it is longer than 5 characters" in feedback(model)
    assert "JSON" not in feedback(model)


async def test_a_check_judges_the_value_where_a_form_is_asked_for() -> None:
    seen: list[Any] = []

    def small(city: City) -> str | None:
        seen.append(city)
        return None if city.size < 8 else "size: take a smaller city"

    for given in (Validate(City, check=small), Validate(check=small)):
        model = Scripted("Oslo", OSLO.replace("7", "9"), OSLO)
        result = await Agent(model, output=City, advisors=[given]).run("?")
        assert seen == [City(name="Oslo", size=9), City(name="Oslo", size=7)]
        assert result.output is seen[-1]  # it is read once
        assert "size: take a smaller city" in feedback(model)
        seen.clear()


async def test_a_check_that_fails_by_a_fault_of_its_own_ends_the_turn() -> None:
    def broken(text: str) -> None:
        raise KeyError("size")

    model = Scripted("hi", repeat=True)
    with pytest.raises(KeyError):
        await Agent(model, advisors=[Validate(check=broken)]).run("?")
    assert len(model.requests) == 1


async def test_a_check_that_gives_neither_none_nor_a_text_is_refused_by_name() -> None:
    def is_short(text: str) -> Any:
        return len(text) < 5

    with pytest.raises(ConfigError, match="'is_short' gave True; it must give None"):
        await Agent(Scripted("hi"), advisors=[Validate(check=is_short)]).run("?")


async def test_a_check_may_judge_with_pydantic() -> None:
    def check(text: str) -> None:
        City.model_validate_json(text)

    model = Scripted('{"name": "Oslo"}', OSLO)
    await Agent(model, advisors=[Validate(check=check)]).run("?")
    assert "- size: is required, got" in feedback(model)


# -- tools, memory, other layers ------------------------------------------------------------------


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.behaviour("B-VA-2", "B-VA-4")
async def test_only_the_answer_is_judged_and_no_tool_runs_again(ask: Way) -> None:
    ran: list[int] = []

    @tool
    def act(number: int) -> str:
        """Acts."""
        ran.append(number)
        return "no JSON"

    model = Scripted(
        *(Say(text="not JSON", calls=[call("act", number=n)]) for n in range(3)), WRONG, OSLO
    )
    result = await ask(Agent(model, tools=[act], advisors=[Validate(City, retries=1)]), "go")
    assert (result.output, ran) == (City(name="Oslo", size=7), [0, 1, 2])
    assert len(model.requests) == 5
    strictly(model)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.rule("R-MEM-3")
async def test_attempts_stay_in_the_log_and_are_not_sent_later(inside: bool) -> None:
    store = InMemory()
    model = Scripted("Oslo", OSLO, OSLO)
    layers = [Validate(City), Memory(store)]
    agent = Agent(model, advisors=layers if inside else layers[::-1])
    await agent.run("where?", conversation="c")
    log = await kept(store)
    assert log[:2] == ["user: where?", "(superseded) assistant: Oslo"]
    assert log[2].startswith("(superseded) user: Your answer does not fit:")
    assert log[3] == f"assistant: {OSLO}"
    await agent.run("again?", conversation="c")
    assert sent(model) == ["user: where?", f"assistant: {OSLO}", "user: again?"]


async def test_a_turn_that_is_blocked_or_cached_passes_as_it_is() -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("no")

    async def cached(request: Any, call_next: Any) -> Any:
        asked.append(1)
        return request.respond("cached")

    asked: list[int] = []
    for hook in ("turn", "round", "chat"):
        for function, status in ((refuse, "blocked"), (cached, "completed")):
            agent = Agent(Scripted(), advisors=[Validate(City), layer("x", hook, function)])
            result = await agent.run("?")
            assert (result.status, result.blocked_by) == (status, "x")
    assert len(asked) == 3


async def test_the_answer_of_a_resumed_turn_is_judged_as_always() -> None:
    async def resume(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(resumed=True))

    model = Scripted(WRONG, OSLO)
    agent = Agent(model, advisors=[layer("resume", "turn", resume), Validate(City)])
    assert (await agent.run("?")).output == City(name="Oslo", size=7)


async def test_the_agent_leaves_the_repair_to_it() -> None:
    model = Scripted(WRONG, repeat=True)
    agent = Agent(model, output=City, advisors=[Validate(retries=0)])
    await agent.run("?")
    assert len(model.requests) == 1
    assert agent.explain().chain("turn") == ("Validate",)


async def test_it_has_nothing_to_do_where_nothing_is_asked_for() -> None:
    model = Scripted("Hello!", repeat=True)
    result = await Agent(model, advisors=[Validate(hold=True)]).run("hi")
    assert (result.text, len(model.requests)) == ("Hello!", 1)


async def test_two_forms_for_one_answer_are_refused_before_any_call() -> None:
    model = Scripted(OSLO, repeat=True)
    agent = Agent(model, advisors=[Validate(City)])
    with pytest.raises(ConfigError, match=r"Two forms are asked for: 'list', and 'City'"):
        await agent.run("?", output=list[int])
    assert model.requests == []
    assert (await agent.run("?", output=City)).output == City(name="Oslo", size=7)


def test_two_validators_are_refused() -> None:
    with pytest.raises(ConfigError, match="their attempts multiply; give one of them the form"):
        Agent(Scripted(), advisors=[Validate(City), Validate(check=short)])


def test_a_layer_inside_that_turns_errors_into_answers_is_warned_about() -> None:
    async def swallow(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    swallows = Layer("safe", turn=swallow, traits=frozenset({"swallows"}))
    with pytest.warns(OnionWarning, match="Validate stands outside safe: the outer one would have"):
        Agent(Scripted(), advisors=[Validate(City), swallows])
    Agent(Scripted(), advisors=[swallows, Validate(City)])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"form": object()}, "No JSON Schema can be made"),
        ({"form": short}, r"Validate\(short\) got a function for a form; write Validate\(check="),
        ({"form": {"type": "thing"}}, "no valid JSON Schema"),
        ({"check": "short"}, "give a function of the answer"),
        ({"check": City}, "give a function of the answer"),
        ({"check": lambda one, two: None}, "it must take the answer alone"),
        ({"retries": -1}, r"retries=-1\): give a whole number"),
        ({"retries": True}, "retries=True"),
        ({"retries": None}, "retries=None"),
        ({"exhausted": "ignore"}, "give 'return' or 'raise'"),
        ({"problems": "some"}, "give 'all' or 'first'"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Validate(**wrong)
