"""The headline results hold: what is claimed of them is asserted here, but for what takes time."""

import pytest

from bench.headline import behaving
from bench.headline.searching import COLD, HOT, Run

ALWAYS = {"mode": "always"}
AUTO = {"reveal": "auto"}


def test_searching_saves_four_fifths_of_the_prompt_and_both_tools_are_called() -> None:
    plain, found = Run(50, 48, None), Run(50, 48, ALWAYS)
    assert plain.called
    assert found.called
    assert found.prompt <= 0.22 * plain.prompt


@pytest.mark.parametrize("words", [4, 48])
def test_few_tools_cost_no_more_than_without_a_search(words: int) -> None:
    assert Run(12, words, {}).prompt <= 1.05 * Run(12, words, None).prompt


@pytest.mark.parametrize("instructions", [50, 1_500])
def test_on_a_hot_cache_searching_costs_no_more_than_sending_all(instructions: int) -> None:
    def run(search: dict[str, str] | None) -> Run:
        return Run(50, 48, search, instructions=instructions, gap=HOT, turns=20)

    plain, auto = run(None), run(AUTO)
    assert auto.later <= 1.01 * plain.later
    assert auto.cost <= 1.05 * min(plain.cost, run(ALWAYS).cost)


def test_on_a_cold_cache_searching_saves_two_thirds() -> None:
    plain = Run(50, 48, None, instructions=50, gap=COLD, turns=3)
    assert Run(50, 48, ALWAYS, instructions=50, gap=COLD, turns=3).cost <= 0.35 * plain.cost


async def test_what_turns_do_is_what_the_table_says() -> None:
    rows = [await behaving.direct(), await behaving.form(), await behaving.facts()]
    assert [ours for _, _, ours in rows] == [
        "verbatim, 1 model call; control 2, rewritten",
        "fixed in 2 calls",
        "control cannot, advised can; 1 retrieval",
    ]
