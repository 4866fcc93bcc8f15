"""What a turn can be asked, and messages as values."""

import multiprocessing
import os
import threading
from typing import Any

import pytest
from hypothesis import given

from retinue.errors import ConfigError
from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    as_messages,
    assistant,
    new_id,
    system,
    tool_result,
    user,
)
from tests.messages.made import messages, words

PICTURE = Image(url="http://example.org/cat.png")
PAPER = File(data=b"%PDF", media_type="application/pdf", name="paper.pdf")
RESULT = tool_result(ToolResult("c1", "search", (Text("found"),)))


@pytest.mark.rule("R-LOOP-7")
@pytest.mark.parametrize(
    ("question", "roles", "parts"),
    [
        ("hello", ["user"], (Text("hello"),)),
        (Text("hello"), ["user"], (Text("hello"),)),
        (PICTURE, ["user"], (PICTURE,)),
        (PAPER, ["user"], (PAPER,)),
        (["look", PICTURE], ["user"], (Text("look"), PICTURE)),
        (("look", PICTURE, PAPER), ["user"], (Text("look"), PICTURE, PAPER)),
        ([PICTURE], ["user"], (PICTURE,)),
        (user("hello"), ["user"], (Text("hello"),)),
        (RESULT, ["tool"], RESULT.parts),
        ([user("one"), user("two")], ["user", "user"], (Text("two"),)),
        ([system("be kind"), user("hi")], ["system", "user"], (Text("hi"),)),
        ([user("hi"), assistant("yes?"), user("go")], ["user", "assistant", "user"], (Text("go"),)),
    ],
)
def test_a_question_may_be_text_parts_or_messages(
    question: Any, roles: list[str], parts: tuple[object, ...]
) -> None:
    asked = as_messages(question)
    assert [message.role for message in asked] == roles
    assert asked[-1].parts == parts


@pytest.mark.rule("R-LOOP-7")
@pytest.mark.parametrize(
    "question",
    ["", "  \n", [], (), [""], ["", " "], Text(" "), user(), user(""), [user("hi"), user(" ")],
     Message("assistant")],
)  # fmt: skip
def test_an_empty_question_is_refused(question: Any) -> None:
    with pytest.raises(ConfigError, match="empty"):
        as_messages(question)


@pytest.mark.rule("R-LOOP-7")
@pytest.mark.parametrize(
    ("question", "culprit"),
    [
        (None, "NoneType"),
        (7, "int"),
        (b"hello", "bytes"),
        ({"role": "user"}, "dict"),
        ([{"role": "user", "content": "hi"}], "dict"),
        (["hi", None], "NoneType"),
        ([["hi"]], "list"),
        ((word for word in ("a", "b")), "generator"),
        (ToolCall("c", "search"), "ToolCall"),
        (["hi", Thinking("hm")], "Thinking"),
        ([user("hi"), "hi"], "mixes"),
    ],
)
def test_what_is_no_question_is_refused_by_name(question: Any, culprit: str) -> None:
    with pytest.raises(ConfigError, match=culprit):
        as_messages(question)


def test_only_text_and_media_make_a_user_message() -> None:
    with pytest.raises(ConfigError, match="ToolResult"):
        user(RESULT.parts[0])  # type: ignore[arg-type]


@pytest.mark.behaviour("B-ME-9")
@given(words.filter(str.strip))
def test_user_text_is_taken_as_it_is(text: str) -> None:
    assert as_messages(text)[0].text == text


@given(messages, words)
def test_with_text_replaces_the_text_and_nothing_else(message: Message, text: str) -> None:
    changed = message.with_text(text)
    assert changed.text == text
    assert changed.id == message.id
    rest = [part for part in message.parts if type(part) is not Text]
    assert [part for part in changed.parts if type(part) is not Text] == rest


@given(messages)
def test_with_text_of_nothing_leaves_no_empty_part(message: Message) -> None:
    assert not any(type(part) is Text for part in message.with_text("").parts)


def test_a_new_text_stands_before_the_calls() -> None:
    call = ToolCall("c1", "search")
    assert assistant(calls=[call]).with_text("let me see").parts == (Text("let me see"), call)


def test_a_changed_copy_forgets_how_the_original_was_encoded() -> None:
    message = user("hi")
    vars(message)["encoded"] = b"..."
    assert vars(message.with_(parts=(Text("bye"),))) == {}


@pytest.mark.rule("R-MEM-1")
def test_ids_are_unique_across_threads() -> None:
    found: list[str] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait(10)
        found.extend([new_id() for _ in range(2_000)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(found) == len(set(found)) == 16_000


@pytest.mark.rule("R-MEM-1")
def test_ids_are_unique_across_forks() -> None:
    reader, writer = os.pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: os.write(writer, "\n".join(new_id() for _ in range(100)).encode())
    )
    child.start()
    child.join(30)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        theirs = set(pipe.read().split())
    ours = {new_id() for _ in range(100)}
    assert len(theirs) == 100
    assert not theirs & ours
