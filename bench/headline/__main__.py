"""Prints the table: what is shown, what a reference system has, and what we have."""

import asyncio

from bench.headline import behaving, searching


def main() -> None:
    """Runs everything, in half a minute."""
    lines = searching.rows() + asyncio.run(behaving.rows())
    print(f"{'':<72}{'reference':<50}retinue")
    for what, reference, ours in lines:
        print(f"{what:<72}{reference:<50}{ours}")


if __name__ == "__main__":
    main()
