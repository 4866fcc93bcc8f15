"""Who looks for an advisor finds it: a page of the known shape, and a line in the index."""

from pathlib import Path

import pytest

import retinue.advisors
import retinue.telemetry
from tests.structure.advisor_pages import HEADINGS, advisors_of, index_faults, page_faults
from tests.structure.sources import ROOT

FOLDER = ROOT / "docs/advisors"
ADVISORS = advisors_of(retinue.advisors, retinue.telemetry)
PAGE = "# Guard\n\n`Guard` guards.\n\n" + "".join(f"## {one}\n\nSo.\n\n" for one in HEADINGS)
EXAMPLE = "## Example\n\n```python\nguard()\n```\n"
GOOD = PAGE.replace("## Example\n", EXAMPLE)


def test_each_advisor_has_a_page_of_the_known_shape() -> None:
    assert page_faults(FOLDER, [*ADVISORS, "standard"]) == []


def test_each_advisor_has_a_line_in_the_index() -> None:
    assert index_faults(FOLDER, ADVISORS) == []


def test_an_advisor_is_told_from_what_else_is_offered() -> None:
    assert ADVISORS["ReReading"] == ("chat",)
    assert "Quota" not in ADVISORS


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (GOOD, None),
        ("", "does not begin with what Guard is"),
        (GOOD.replace("`Guard` guards", "Guards"), "does not begin with what Guard is"),
        (GOOD.replace("## What it costs\n", ""), "has the headings"),
        (PAGE, "shows no example"),
        (PAGE.replace("So.", "```python\nguard()\n```", 1), "shows no example"),
    ],
)
def test_a_page_of_another_shape_is_found(tmp_path: Path, page: str, fault: str | None) -> None:
    (tmp_path / "guard.md").write_text(page)
    found = page_faults(tmp_path, ["Guard"])
    assert found == [] if fault is None else any(fault in one for one in found)


def test_a_missing_page_is_found(tmp_path: Path) -> None:
    assert page_faults(tmp_path, ["Guard"]) == ["Guard has no page guard.md."]


@pytest.mark.parametrize(
    "row",
    [
        "| [`Guard`](guard.md) | stream, turn | guards |",
        "| [`Guard`](guard.md) | turn, stream or tool | guards |",
    ],
)
def test_a_line_may_name_hooks_that_come_by_choice(tmp_path: Path, row: str) -> None:
    (tmp_path / "README.md").write_text(f"# All\n\n{row}\n")
    assert index_faults(tmp_path, {"Guard": ("turn", "stream")}) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| [`Guard`](other.md) | turn, stream | x |", "does not lead to the page of Guard"),
        ("", "does not lead to the page of Guard"),
        ("| [`Guard`](guard.md) | turn | x |", "says that Guard has ['turn']; it has"),
        ("| [`Guard`](guard.md) | turn, stream, fly | x |", "has ['turn', 'stream', 'fly']"),
        (
            "| [`Guard`](guard.md) | turn, stream | x |\n| [`Ghost`](ghost.md) | turn | x |",
            "names Ghost, which is none",
        ),
    ],
)
def test_a_wrong_line_of_the_index_is_found(tmp_path: Path, row: str, fault: str) -> None:
    (tmp_path / "README.md").write_text(f"# All\n\n{row}\n")
    (found,) = index_faults(tmp_path, {"Guard": ("turn", "stream")})
    assert fault in found
