"""Jobs as data: there and back, and nothing that is none is taken for one."""

from typing import Any

import msgspec
import pytest

from retinue import Approve, Proceed, Reject, Reply, Retry, user
from retinue.messages.codec import FormatError
from retinue.serve.jobs import Answered, Choices, ClientTool, Job


def test_a_job_is_read_as_it_was_written() -> None:
    job = Job(
        agent="helper",
        messages=(user("Hello"),),
        conversation="c-1",
        owner="ann",
        context={"plan": "free"},
        choices=Choices(temperature=0.5, stop=("END",)),
        tools=(ClientTool("locate", "Where the user is."),),
        output={"type": "object"},
        request="r-1",
        seconds=12.5,
        detached=True,
    )
    assert Job.load(job.dump()) == job


def test_every_job_has_a_name_of_its_own() -> None:
    assert Job(agent="a").id != Job(agent="a").id


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (Answered("approve"), Approve()),
        (Answered("approve", args={"n": 1}), Approve({"n": 1})),
        (Answered("reject", reason="too dear"), Reject("too dear")),
        (Answered("reply", value={"lat": 1}), Reply({"lat": 1})),
        (Answered("retry"), Retry()),
        (Answered("proceed"), Proceed()),
    ],
)
@pytest.mark.rule("R-HITL-3")
def test_answers_are_those_of_the_library(given: Answered, answer: Any) -> None:
    assert given.answer == answer
    job = Job(agent="a", kind="resume", conversation="c", answers={"call": given})
    assert Job.load(job.dump()).answers["call"].answer == answer


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (b'{"kind":"reject","value":"too dear"}', "`value` goes with the kind 'reply'"),
        (b'{"kind":"reply","reason":"Oslo"}', "`reason` goes with the kind 'reject'"),
        (b'{"kind":"retry","args":{}}', "`args` goes with the kind 'approve'"),
    ],
)
def test_an_answer_that_would_be_dropped_unheard_is_refused(
    document: bytes, complaint: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=complaint):
        msgspec.json.decode(document, type=Answered)


def test_what_an_answer_does_not_use_may_be_empty() -> None:
    given = b'{"kind":"approve","args":null,"reason":"","value":null}'
    assert msgspec.json.decode(given, type=Answered) == Answered("approve")


@pytest.mark.parametrize(
    "document", [b"", b"[]", b'{"format":1}', b"\xff\xfe", b"[" * 100_000, b'{"agent":1}']
)
def test_bytes_that_are_no_job_are_refused(document: bytes) -> None:
    with pytest.raises(FormatError, match="This is no job"):
        Job.load(document)


def test_a_job_of_a_later_format_says_what_to_do() -> None:
    with pytest.raises(FormatError, match=r"format 2, .* upgrade retinue"):
        Job.load(b'{"format":2,"agent":"a"}')


@pytest.mark.parametrize(
    "document",
    [
        b'{"headers":{"authorization":"x"}}',
        b'{"extra":{}}',
        b'{"temperature":9}',
        b'{"max_tokens":0}',
        b'{"stop":[""]}',
        b'{"seed":1e400}',
    ],
)
def test_a_client_cannot_choose_what_is_the_servers_business(document: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        msgspec.json.decode(document, type=Choices)


def test_choices_are_settings() -> None:
    settings = Choices(temperature=0.1, max_tokens=5, stop=("x",), tool_choice="none").settings
    assert (settings.temperature, settings.max_tokens) == (0.1, 5)
    assert (settings.stop, settings.tool_choice) == (("x",), "none")
