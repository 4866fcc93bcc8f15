"""No page shows code that nobody runs, or leads to a page that nobody wrote."""

from pathlib import Path

import pytest

from tests.structure.documentation import block_faults, link_faults
from tests.structure.sources import ROOT

SOURCE = "import retinue\n\n\ndef main():\n    # region call\n    retinue.run()\n    # endregion\n"
WHOLE = "import retinue\n\n\ndef main():\n    retinue.run()"


def tree(root: Path, block: str, page: str = "docs/guide/page.md") -> Path:
    (root / "docs/guide").mkdir(parents=True)
    (root / "docs_src").mkdir()
    (root / "docs_src/call.py").write_text(SOURCE)
    (root / "README.md").write_text("# retinue\n")
    (root / page).write_text(f"# Page\n\n{block}\n")
    return root


def test_every_python_block_of_the_docs_is_a_file_that_is_run() -> None:
    assert block_faults(ROOT) == []


@pytest.mark.parametrize("code", [WHOLE, "retinue.run()"])
def test_a_whole_file_and_a_region_may_be_quoted(tmp_path: Path, code: str) -> None:
    assert block_faults(tree(tmp_path, f"```python\n{code}\n```")) == []


def test_a_block_in_a_list_may_be_quoted(tmp_path: Path) -> None:
    assert block_faults(tree(tmp_path, "- so:\n  ```python\n  retinue.run()\n  ```")) == []


@pytest.mark.parametrize("fence", ["```python", "```py", "~~~python", '```python title="x"'])
def test_a_block_that_no_file_holds_is_found(tmp_path: Path, fence: str) -> None:
    root = tree(tmp_path, f"{fence}\nretinue.walk()\n{fence[:3]}")
    (fault,) = block_faults(root)
    assert fault.startswith("docs/guide/page.md:3:")


def test_the_readme_is_read_too(tmp_path: Path) -> None:
    root = tree(tmp_path, "```python\nretinue.walk()\n```", page="README.md")
    assert len(block_faults(root)) == 1


def test_blocks_in_other_languages_are_left_alone(tmp_path: Path) -> None:
    assert block_faults(tree(tmp_path, "```console\n$ retinue chat\n```")) == []


def test_every_link_to_a_file_leads_to_one() -> None:
    assert link_faults(ROOT) == []


@pytest.mark.parametrize(
    "link",
    ["[a](gone.md)", '[a](gone.md#part "title")', "[`code`](gone.md)", "[a]\n\n[a]: gone.md"],
)
@pytest.mark.parametrize("page", ["README.md", "docs/guide/page.md"])
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, link: str, page: str) -> None:
    (fault,) = link_faults(tree(tmp_path, link, page))
    assert fault.startswith(f"{page}:")
    assert fault.endswith("there is no gone.md.")


@pytest.mark.parametrize(
    "text",
    [
        "[up](../../README.md) [folder](..) [part](#part) [far](https://models.example/gone.md)",
        "```md\n[a](gone.md)\n```",
        "`tools[name](argument)`",
    ],
)
def test_links_that_hold_and_code_that_looks_like_links_are_left_alone(
    tmp_path: Path, text: str
) -> None:
    assert link_faults(tree(tmp_path, text)) == []
