"""Messages survive being written and read, and what is no message is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.messages import Message, user
from retinue.messages.codec import FORMAT, FormatError, decode, dump, encode, load
from tests.messages.made import messages


@pytest.mark.rule("R-MEM-2")
@given(messages)
def test_a_message_reads_as_it_was_written(message: Message) -> None:
    assert decode(encode(message)) == message
    assert decode(encode(message).decode()) == message


@given(st.lists(messages, max_size=3))
def test_a_document_reads_as_it_was_written(several: list[Message]) -> None:
    assert load(dump(several)) == tuple(several)


def test_a_document_says_its_format() -> None:
    assert dump([]).startswith(b'{"format":%d,' % FORMAT)


def test_the_text_of_format_1_stays_readable() -> None:
    written = (
        '{"format":1,"messages":[{"role":"user","parts":[{"type":"text","text":"hi"},'
        '{"type":"image","data":"AP8=","media_type":"image/gif"}],"id":"m1"},'
        '{"role":"assistant","parts":[{"type":"thinking","text":"hm","signature":"s"},'
        '{"type":"tool_call","id":"c1","name":"search","arguments":"{}"}],"id":"m2",'
        '"usage":{"input":3}},{"role":"tool","parts":[{"type":"tool_result","call_id":"c1",'
        '"name":"search","ok":false}],"id":"m3","origin":"healed"}]}'
    )
    question, answer, result = load(written)
    assert question.text == "hi"
    assert question.parts[1].data == b"\x00\xff"  # type: ignore[union-attr]
    assert answer.thinking == "hm"
    assert answer.tool_calls[0].name == "search"
    assert answer.usage is not None
    assert answer.usage.output is None
    assert not result.tool_results[0].ok
    assert result.origin == "healed"


@pytest.mark.parametrize("number", [0, 2, -1, 10**30])
def test_a_document_of_another_format_is_refused(number: int) -> None:
    with pytest.raises(FormatError, match=f"format {number}, .* upgrade"):
        load(f'{{"format":{number},"messages":"of another kind"}}')


@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"null", b"[]", b"{}", b"\xff\xfe", b"{", '{"format":1}',
        '{"format":"1","messages":[]}',
        '{"format":true,"messages":[]}', '{"format":1,"messages":[{"role":"boss"}]}',
        '{"format":1,"messages":[{"role":"user","parts":[{"type":"smell"}]}]}',
        '{"format":1,"messages":[{"role":"user","parts":[{"type":"image","data":"*"}]}]}',
    ],
)  # fmt: skip
def test_what_is_no_document_is_refused(garbage: bytes | str) -> None:
    with pytest.raises(FormatError, match="no document of messages"):
        load(garbage)


@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"7", b"{}", b"\xff", '{"role":"boss"}', '{"role":"user","parts":[{}]}',
        '{"role":"user","id":7}', '{"role":"user","meta":{"a":' + 100_000 * "[",
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(garbage: bytes | str) -> None:
    with pytest.raises(FormatError, match="no stored message"):
        decode(garbage)


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode(data)
    with pytest.raises(FormatError):
        load(data)


@given(messages, st.data())
def test_a_message_that_was_cut_off_is_refused(message: Message, data: st.DataObject) -> None:
    written = encode(message)
    with pytest.raises(FormatError):
        decode(written[: data.draw(st.integers(0, len(written) - 1))])


def test_what_json_cannot_hold_is_refused_when_it_is_written() -> None:
    with pytest.raises(TypeError, match="object"):
        encode(user("hi").with_(meta={"connection": object()}))
