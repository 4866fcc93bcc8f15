"""Markdown in pieces."""

from hypothesis import given
from hypothesis import strategies as st

from retinue.cli.blocks import Blocks

PIECES = st.lists(
    st.sampled_from(
        ["# Title\n", "word ", "\n", "\n\n", "- item\n", "1. item\n", "  more\n", "```\n", "~~~\n",
         "| a | b |\n", "|---|---|\n", "> said\n", "---\n", "    code\n", "\t", "é", "<b>\n",
         "\r\n"]
    ),
    max_size=40,
)  # fmt: skip


def settled(chunks: list[str]) -> tuple[list[str], str]:
    blocks = Blocks()
    given = [text for chunk in chunks if (text := blocks.add(chunk))]
    return given, blocks.take()


@given(PIECES)
def test_nothing_is_lost_doubled_or_moved(pieces: list[str]) -> None:
    given, rest = settled(pieces)
    assert "".join(given) + rest == "".join(pieces)


@given(PIECES, st.data())
def test_how_the_text_is_cut_does_not_matter_to_what_it_is(
    pieces: list[str], data: st.DataObject
) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    given, rest = settled(chunks)
    assert "".join(given) + rest == text


def test_a_paragraph_is_settled_by_the_next_one() -> None:
    assert settled(["One.\n", "\n", "Two.\n"]) == (["One.\n\n"], "Two.\n")


def test_a_list_and_code_stay_whole_over_blank_lines() -> None:
    assert settled(["- a\n\n", "- b\n\n", "- c\n"]) == ([], "- a\n\n- b\n\n- c\n")
    assert settled(["```\na\n\n", "b\n\n# c\n"]) == ([], "```\na\n\nb\n\n# c\n")


def test_a_line_that_is_not_finished_settles_nothing() -> None:
    assert settled(["1. a\n\n2"]) == ([], "1. a\n\n2")


def test_what_was_taken_is_forgotten() -> None:
    blocks = Blocks()
    blocks.add("One.")
    assert blocks.take() == "One."
    assert blocks.take() == ""
