"""Nothing is left of ten thousand turns, of which some fail and some are left by their readers.

`python -m bench leaks` prints the figures.
"""

import pytest

from bench.leaks import TURNS, leaks

MOST_BLOCKS = 400
"""Pieces of memory for 5,000 turns. One that each faulty turn kept would be 500."""
MOST_PEAK = 4_096
"""KiB by which later turns may raise the peak: what one batch takes varies."""


@pytest.mark.rule("R-LOOP-8")
async def test_ten_thousand_turns_leave_no_connection_no_task_no_file_and_no_memory() -> None:
    left = await leaks(TURNS)  # which also waits until no vendor has a connection
    assert (left.failed, left.left, left.done) == (TURNS // 10, TURNS // 10, TURNS * 8 // 10)
    assert left.tasks == 0
    assert left.files == 0
    assert left.blocks < MOST_BLOCKS
    assert left.peak_kb < MOST_PEAK
