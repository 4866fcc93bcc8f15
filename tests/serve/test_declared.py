"""Agents declared for serving, the app as a guest of another app, its document and its metrics."""

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import retinue.serve
from retinue import Agent, ConfigError, Layer, Usage, user
from retinue.advisors import Memory
from retinue.chains import name_of
from retinue.models.scripted import Say, Scripted
from retinue.serve.access import Caller
from retinue.serve.bounds import Bounds
from retinue.serve.declared import gateway_of
from retinue.serve.jobs import Job
from retinue.serve.tokens import Tokens
from retinue.stores import InMemory
from tests.serve.scenes import echoing, paying
from tests.serve.serving import keys, listening, serving


def test_a_declared_agent_has_the_standard_pipeline_round_its_own_layers() -> None:
    audit = Layer("Audit", chat=lambda request, call_next: call_next(request), order=320)
    built: list[int] = []

    async def chat(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    audit = Layer("Audit", chat=chat, order=320)
    guard = Layer("Guard", chat=chat, order=300)

    @retinue.serve.agent(extra=[guard])
    def support() -> Agent:
        """Helps."""
        built.append(1)
        return Agent(Scripted("Hi"), advisors=[audit])

    agent = support()
    assert support() is agent
    assert built == [1]
    assert agent.name == "support"
    assert [name_of(one) for one in agent.advisors] == [
        "Memory", "Guard", "Audit", "UsageCollector", "Thinking",
    ]  # fmt: skip


async def test_the_five_stages_can_be_set_as_those_of_the_standard_pipeline() -> None:
    heard: list[Any] = []

    class Stamp:
        async def before_request(self, request: Any) -> None:
            heard.append("before")

    @retinue.serve.agent(interceptors=[Stamp()], think="hidden", forward=heard.append)
    def support() -> Agent:
        return Agent(Scripted(Say(text="Hi", thinking="Hm.")))

    names = [name_of(one) for one in support().advisors]
    assert names == ["Memory", "Interceptors", "UsageCollector", "Thinking", "Forward"]
    gateway = gateway_of(support)
    job = Job(agent="support", messages=(user("Hello"),))
    async with await gateway.start(Caller(None, frozenset()), job) as reader:
        kinds = [type(event).__name__ async for event in reader.events()]
    assert "ThinkingChunk" not in kinds
    assert heard[0] == "before"
    assert type(heard[-1]).__name__ == "TurnEnded"


def test_an_agent_with_a_memory_keeps_its_own() -> None:
    store = InMemory()

    @retinue.serve.agent(name="other", store=InMemory())
    def support() -> Agent:
        return Agent(Scripted("Hi"), advisors=[Memory(store)])

    (memory,) = [one for one in support().advisors if isinstance(one, Memory)]
    assert memory.store is store


def test_what_builds_no_agent_is_refused() -> None:
    async def later() -> Agent:
        return echoing()

    with pytest.raises(ConfigError, match="decorates a plain function"):
        retinue.serve.agent()(later)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="gave int"):
        retinue.serve.agent()(lambda: 1)()  # pyright: ignore[reportArgumentType, reportReturnType]
    with pytest.raises(ConfigError, match="no agent to serve"):
        retinue.serve.app({})
    with pytest.raises(ConfigError, match="no Agent but 1"):
        retinue.serve.app(1)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"body_bytes": -1}, {"turns": 0}])
def test_a_bound_under_which_nothing_runs_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Bounds(**wrong)


@pytest.mark.parametrize(
    ("key", "algorithms"),
    [
        ("short", ("HS256",)),
        ("x" * 40, ("none",)),
        ("x" * 40, ("HS256", "RS256")),
        ("", ("HS256",)),
        ("x" * 40, ()),
    ],
)
def test_tokens_that_anybody_could_write_are_refused_at_once(
    key: str, algorithms: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError):
        Tokens(key, algorithms=algorithms)


async def test_the_app_is_mounted_in_another_one() -> None:
    @retinue.serve.agent
    def helper() -> Agent:
        return echoing()

    inner = retinue.serve.app(helper)
    outer = Starlette(routes=[Mount("/agents", inner)])
    async with listening(outer, inner.state.gateway) as here:
        _, got = await here.json("POST", "/agents/v1/turns", {"input": "Hi"})
        assert got["text"] == "Hi"
        events = await here.events("/agents/v1/turns", {"input": "Hi", "stream": True})
        assert events[-1].text == "Hi"
        _, document = await here.json("GET", "/agents/openapi.json")
        assert document["servers"] == [{"url": "/agents"}]
        assert (await here.json("GET", "/v1/agents"))[0] == 404
    await inner.state.gateway.close()


async def test_paths_and_methods_that_are_not_there_are_told_in_one_form() -> None:
    async with serving(echoing()) as here:
        status, got = await here.json("GET", "/v2/everything")
        assert (status, got["error"]["code"]) == (404, "not_found")
        status, got = await here.json("DELETE", "/v1/turns")
        assert (status, got["error"]["code"]) == (405, "invalid")


async def test_metrics_count_turns_tokens_and_times() -> None:
    said = Say(text="Hi", usage=Usage(input=7, output=3))
    agents = {"payer": paying(), "helper": Agent(Scripted(said, RuntimeError("no")))}
    async with serving(agents) as here:
        await here.json("POST", "/v1/turns", {"agent": "payer", "input": "Pay."})
        for _ in range(2):
            await here.json("POST", "/v1/turns", {"agent": "helper", "input": "Hi"})
        async with here.client.get("/metrics") as response:
            assert response.content_type == "text/plain"
            lines = (await response.text()).splitlines()
    for line in (
        'retinue_turns_total{agent="payer",status="paused"} 1.0',
        'retinue_turns_total{agent="helper",status="completed"} 1.0',
        'retinue_turns_total{agent="helper",status="failed"} 1.0',
        'retinue_tokens_total{agent="helper",kind="input"} 7.0',
        'retinue_tokens_total{agent="helper",kind="output"} 3.0',
        'retinue_first_token_seconds_count{agent="helper"} 1.0',
        "retinue_turns_running 0.0",
        "retinue_turns_queued 0.0",
        "retinue_workers 0.0",
    ):
        assert line in lines


async def test_the_load_is_shown_to_those_who_may_see_it() -> None:
    access, secrets = keys("ann", scopes=("metrics",))
    async with serving(echoing(), access=access) as here:
        _, got = await here.json("GET", "/v1/load", key=secrets["ann"])
        assert (got["running"], got["capacity"], got["workers"]) == (0, 1000, [])
        assert (await here.json("POST", "/v1/turns", {}, key=secrets["ann"]))[0] == 403


async def test_the_document_describes_every_path_and_its_failures() -> None:
    async with serving(echoing()) as here:
        _, document = await here.json("GET", "/openapi.json")
    assert document["openapi"] == "3.1.0"
    asked = document["paths"]["/v1/turns"]["post"]
    assert set(asked["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert {"400", "401", "404", "409", "413", "429", "503"} <= set(asked["responses"])
    assert "turn_ended" in str(document["components"]["schemas"])
    assert "/metrics" in document["paths"]


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"access": "secret"}, "give ApiKeys, Tokens or AnyOf"),
        ({"bounds": {}}, r"give Bounds\(...\)"),
        ({"keeping": 5}, r"give Keeping\(...\)"),
        ({"hosts": "example.org"}, r"hosts=\[...\]"),
        ({"origins": "https://example.org"}, r"origins=\[...\]"),
        ({"store": "chat.db"}, "chat.db"),
    ],
)
def test_options_of_a_wrong_shape_are_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        retinue.serve.app(echoing(), **options)


@pytest.mark.rule("R-FAIL-3")
def test_several_agents_in_a_list_are_asked_for_their_names() -> None:
    with pytest.raises(ConfigError, match="are given by their names"):
        retinue.serve.app([echoing()])  # pyright: ignore[reportArgumentType]
