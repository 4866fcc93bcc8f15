"""Keys, tokens and owners over HTTP: who is nobody gets nothing, and no one sees another's."""

import time
from typing import Any

import jwt
import pytest

from retinue import Agent
from retinue.models.scripted import Scripted
from retinue.serve.access import ApiKeys, add_key, new_key
from retinue.serve.tokens import Tokens
from tests.serve.scenes import Stuck, echoing, paying, within
from tests.serve.serving import keys, serving

SECRET = "a secret of thirty-two bytes or so"


DOORS = (
    ("POST", "/v1/turns"),
    ("GET", "/v1/agents"),
    ("GET", "/v1/conversations"),
    ("GET", "/metrics"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/ag-ui"),
)


async def test_who_is_nobody_gets_nothing() -> None:
    access, _ = keys("ann")
    async with serving(echoing(), access=access) as here:
        for method, path in DOORS:
            for given in (None, "Bearer ", "Bearer rk-wrong", "Bearer a.b.c", "Basic YTpi", "x"):
                headers = {} if given is None else {"authorization": given}
                status, got = await here.json(method, path, {"input": "Hi"}, **headers)
                assert (status, got["error"]["code"]) == (401, "unauthenticated"), (path, given)
        assert (await here.json("GET", "/healthz"))[0] == 200


async def test_a_refusal_says_how_to_come_in() -> None:
    access, _ = keys("ann")
    async with (
        serving(echoing(), access=access) as here,
        here.client.get("/v1/agents") as response,
    ):
        assert response.headers["www-authenticate"] == "Bearer"


async def test_a_key_does_what_its_scopes_say() -> None:
    access, secrets = keys("ann", scopes=("turns",))
    async with serving(echoing(), access=access) as here:
        assert (await here.json("GET", "/v1/agents", key=secrets["ann"]))[0] == 200
        status, got = await here.json("GET", "/v1/conversations", key=secrets["ann"])
        assert (status, got["error"]["code"]) == (403, "forbidden")
        assert (await here.json("GET", "/metrics", key=secrets["ann"]))[0] == 403


@pytest.mark.rule("R-MEM-9")
async def test_conversations_of_others_are_not_found() -> None:
    access, secrets = keys("ann", "bob")
    async with serving(paying(), access=access) as here:
        body = {"input": "Pay five.", "conversation": "c-1"}
        _, got = await here.json("POST", "/v1/turns", body, key=secrets["ann"])
        waiting = got["pending"][0]["id"]
        tries: list[tuple[str, str, Any]] = [
            ("GET", "/v1/conversations/c-1", None),
            ("GET", "/v1/conversations/c-1/messages", None),
            ("DELETE", "/v1/conversations/c-1", None),
            ("POST", "/v1/conversations/c-1/fork", {}),
            ("POST", "/v1/conversations/c-1/rollback", {"to": None}),
            ("POST", "/v1/turns", body),
            ("POST", "/v1/conversations/c-1/answers", {"answers": {waiting: {"kind": "approve"}}}),
        ]
        for method, path, sent in tries:
            status, refused = await here.json(method, path, sent, key=secrets["bob"])
            assert (status, refused["error"]["code"]) == (404, "not_found"), path
        _, mine = await here.json("GET", "/v1/conversations", key=secrets["bob"])
        assert mine == {"conversations": []}
        _, shown = await here.json("GET", "/v1/conversations/c-1", key=secrets["ann"])
        assert shown["pending"][0]["id"] == waiting


async def test_turns_of_others_are_not_found() -> None:
    access, secrets = keys("ann", "bob")
    stuck = Stuck()
    async with serving(Agent(Scripted(stuck)), access=access) as here:
        body = {"input": "go", "stream": True}
        async with here.stream("/v1/turns", body, key=secrets["ann"]) as frames:
            reading = aiter(frames)
            first: Any = await within(anext(reading))
            for method, path in (("GET", "events"), ("POST", "cancel")):
                status, _ = await here.json(
                    method, f"/v1/turns/{first.turn}/{path}", key=secrets["bob"]
                )
                assert status == 404
            stuck.go.set()
            rest: list[Any] = [event async for event in reading]
    assert rest[-1].status == "completed"


async def test_the_same_request_id_of_two_owners_is_two_requests() -> None:
    access, secrets = keys("ann", "bob")
    async with serving(echoing(), access=access) as here:
        body = {"input": "Hi", "request_id": "r"}
        turns = {
            (await here.json("POST", "/v1/turns", body, key=secrets[who]))[1]["turn"]
            for who in ("ann", "bob")
        }
    assert len(turns) == 2


def token(**claims: Any) -> str:
    said = {"sub": "ann", "exp": time.time() + 60, "iss": "door", "aud": "house", **claims}
    kept = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(kept, SECRET, algorithm="HS256")


async def test_a_token_is_let_in_as_its_subject() -> None:
    access = Tokens(SECRET, issuer="door", audience="house")
    async with serving(echoing(), access=access) as here:
        body = {"input": "Hi", "conversation": "c"}
        assert (await here.json("POST", "/v1/turns", body, key=token()))[0] == 200
        path = "/v1/conversations/c/messages"
        assert (await here.json("GET", path, key=token()))[0] == 200
        assert (await here.json("GET", path, key=token(sub="bob")))[0] == 404
        assert (await here.json("GET", "/metrics", key=token(scope="metrics turns")))[0] == 200
        assert (await here.json("GET", path, key=token(scope="turns")))[0] == 403


WRONG = (
    token(exp=time.time() - 3600),
    token(exp=None),
    token(sub=None),
    token(sub=""),
    token(iss="other"),
    token(aud="other"),
    token(nbf=time.time() + 3600),
    token(scope=3),
    token()[:-2] + "xx",
    jwt.encode({"sub": "ann", "exp": time.time() + 60}, "x" * 40, algorithm="HS256"),
    jwt.encode({"sub": "ann", "exp": time.time() + 60}, "", algorithm="none"),
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.",
    "..",
    "!.!.!",
)


async def test_a_token_that_is_not_right_is_refused_and_not_quoted() -> None:
    access = Tokens(SECRET, issuer="door", audience="house")
    async with serving(echoing(), access=access) as here:
        for wrong in WRONG:
            status, got = await here.json("GET", "/v1/agents", key=wrong)
            assert (status, got["error"]["code"]) == (401, "unauthenticated"), wrong
            text = got["error"]["message"]
            assert wrong[10:] not in text or len(wrong) < 12
            assert SECRET not in text


async def test_a_key_is_withdrawn_by_its_line_while_the_server_runs(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retinue.serve.access._LOOK_EVERY", 0.0)
    file = tmp_path / "keys"
    secret, kept = new_key("ann")
    add_key(file, kept)
    assert secret not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    async with serving(echoing(), access=ApiKeys(file)) as here:
        assert (await here.json("GET", "/v1/agents", key=secret))[0] == 200
        file.write_text("")
        assert (await here.json("GET", "/v1/agents", key=secret))[0] == 401
        add_key(file, kept)
        assert (await here.json("GET", "/v1/agents", key=secret))[0] == 200
