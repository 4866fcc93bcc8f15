"""Tables: drawn on a terminal, and lines with tabs between the columns in a pipe."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from retinue.cli.wording import safe


def print_rows(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table. In a pipe there are no headers, and tabs in a cell become spaces."""
    console = Console()
    if not console.is_terminal:
        for row in rows:
            print("\t".join(" ".join(safe(cell).split()) for cell in row))
        return
    table = Table(*headers, box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(safe(cell), overflow="fold") for cell in row))
    console.print(table)
