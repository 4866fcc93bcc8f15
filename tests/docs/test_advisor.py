"""What the transform of the README's example leaves alone."""

import runpy

import pytest

from retinue.messages import TextDelta, ThinkingDelta, ToolCallDelta
from tests.structure.sources import ROOT


@pytest.mark.rule("R-STREAM-2", "R-STREAM-7")
def test_the_example_transform_changes_text_and_passes_on_the_rest() -> None:
    shout = runpy.run_path(str(ROOT / "docs_src/advisor.py"), run_name="example")["Shout"]()
    signed, call = ThinkingDelta("hm", signature="proof"), ToolCallDelta(0, "1", "search", "{}")
    assert [*shout.feed(TextDelta("hi"))] == [TextDelta("HI")]
    assert [*shout.feed(signed), *shout.feed(call)] == [signed, call]
