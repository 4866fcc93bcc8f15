"""The ids that tests may cite: the rules of the semantics, and the behaviours to be shown.

A test cites with `@pytest.mark.rule("R-LOOP-4")` and `@pytest.mark.behaviour("B-ST-1")`. What no
test cites is printed at the end of a whole run, and `ANSWERED` says why where there is a reason:
the behaviour does not fit the design, or what shows it is not built yet.
"""

import textwrap
from typing import Final

_RULES: Final = {
    "ONION": 12,
    "LOOP": 10,
    "TOOL": 12,
    "FAIL": 3,
    "ENGINE": 4,
    "STREAM": 8,
    "USAGE": 4,
    "MEM": 9,
    "HITL": 6,
}

RULES: Final = tuple(f"R-{area}-{n}" for area, count in _RULES.items() for n in range(1, count + 1))

BEHAVIOURS: Final[dict[str, str]] = {
    # The onion
    "B-ON-1": "what an inner layer does lies inside the outer layer's interval",
    "B-ON-2": "an outer layer sees the response as the inner layer changed it",
    "B-ON-3": "a turn that re-enters twice: one user message, outer layers once",
    "B-ON-4": "a short-circuit at turn, chat and tool says who blocked",
    "B-ON-5": "a block holds through every entry point",
    "B-ON-6": "a retry outside a layer that swallows errors is warned about",
    "B-ON-7": "a layer that replaces the response does so in a stream too",
    "B-ON-8": "what cannot be a layer is refused at build, by name",
    "B-ON-9": "100 concurrent turns share no per-turn data",
    "B-ON-10": "one tool round: how often each hook runs",
    "B-ON-11": "changing an agent leaves the old one as it was",
    "B-ON-12": "context set outside is seen inside, in every round, and by the caller",
    "B-ON-13": "an error of a layer runs each finally once and arrives unwrapped",
    # The loop and its tools
    "B-LO-1": "n tool rounds: n+1 model calls, each message in them once",
    "B-LO-2": "feedback added between two rounds stays in the later ones",
    "B-LO-3": "one retrieval serves all rounds of a turn",
    "B-LO-4": "the same call for ever ends with the status limit",
    "B-LO-5": "an invented tool name: the model is told the valid ones",
    "B-LO-6": "wrong arguments: the field is named and the body never runs",
    "B-LO-7": "a tool that raises leaves its siblings alone",
    "B-LO-8": "calls run at the same time, results come in call order, serial is kept",
    "B-LO-9": "two writers of one slot: the same state every time",
    "B-LO-10": "the caller's context variables are visible in every tool",
    "B-LO-11": "eligibility false: nothing runs and the log stays valid",
    "B-LO-12": "return_direct alone, many, mixed, failing, streamed, and the turn after",
    "B-LO-13": "a timeout lets the turn go on while a sync tool still sleeps",
    "B-LO-14": "a cancelled async tool sees the cancel; the next turn works",
    "B-LO-15": "a token budget stops a long stream near its limit",
    "B-LO-16": "a limit with open calls leaves a log that strict providers take",
    "B-LO-17": "tools that a layer adds run; those it removes are refused",
    "B-LO-18": "results of every kind reach the model",
    "B-LO-19": "awkward parameter names, defaults and annotations",
    "B-LO-20": "one request object run twice has the same effect",
    # Streams
    "B-ST-1": "redaction over split chunks: shown, returned and stored are equal",
    "B-ST-2": "after a retried attempt a reader can rebuild the exact text",
    "B-ST-3": "a guard that trips late: nothing, or only the released prefix, was shown",
    "B-ST-4": "a transform acts the same in run and in stream",
    "B-ST-5": "text before a tool call is commentary, not the answer",
    "B-ST-6": "a side call of a layer is counted, and not streamed",
    "B-ST-7": "after-code runs once whatever finish reason comes",
    "B-ST-8": "tool-call fragments in every odd order become whole calls",
    "B-ST-9": "a reader that leaves closes the model call and leaves no task",
    "B-ST-10": "a slow reader keeps memory bounded",
    "B-ST-11": "server-sent events split at every byte, in every dialect",
    "B-ST-12": "an error inside a stream keeps the message and the partial text",
    "B-ST-13": "one end event, the last, for every status",
    # Usage and thinking
    "B-US-1": "each way of reporting usage: stream equals run, unknown is None",
    "B-US-2": "usage of several rounds with cache reads adds up",
    "B-US-3": "usage survives an error and a cancel",
    "B-TH-1": "thinking never gets into the text, in whatever form it comes",
    "B-TH-2": "signed thinking goes back verbatim, and only to its own vendor",
    # Memory
    "B-ME-1": "the second turn holds the first exchange once",
    "B-ME-2": "a window never splits a call from its result",
    "B-ME-3": "a resent transcript is stored once",
    "B-ME-4": "killed while a tool runs, the conversation goes on",
    "B-ME-5": "after a failed call no two user messages follow each other",
    "B-ME-6": "blocked input is not stored and blocks nothing later",
    "B-ME-7": "two turns on one conversation never interleave",
    "B-ME-8": "several messages of every kind are stored and sent in order",
    "B-ME-9": "braces, templates and control tokens are data",
    "B-ME-10": "conversation ids of every shape; an empty one is refused",
    # Guards, validation, retrieval
    "B-GU-1": "matching folds case, width and invisible characters, and knows words",
    "B-GU-2": "an input guard leaves tool results alone; an output guard does not",
    "B-VA-1": "how many model calls validation makes",
    "B-VA-2": "only answers are validated, only failures are counted",
    "B-VA-3": "JSON in fences, prose and other wrappings is read",
    "B-VA-4": "a repair of the answer runs no tool again",
    "B-VA-5": "schemas given as data and as pydantic types are enforced",
    "B-RA-1": "nothing retrieved: the question goes through, or strictly not",
    "B-RA-2": "images of the question stay",
    # Tool search
    "B-TS-1": "found tools appear in the next round and stay",
    "B-TS-2": "two searches in one round both count",
    "B-TS-3": "revealing a tool keeps the prefix of the request",
    "B-TS-4": "queries in every script; common words weigh nothing",
    "B-TS-5": "concurrent turns do not see each other's index",
    # Pausing
    "B-PA-1": "gated calls answered in any order, apart and together",
    "B-PA-2": "pause and resume in a new process run nothing twice",
    "B-PA-3": "a gate that raises pauses",
    "B-PA-4": "what was approved is what runs",
    "B-PA-5": "a pause is consumed once; a foreign one is not found",
    "B-PA-6": "validation goes on after a resume",
    "B-PA-7": "guards and retrieval do not run again on resume",
    "B-PA-8": "a pause of a sub-agent pauses its parent; resume reaches it",
    "B-PA-9": "after an environment failure only the failed call runs again",
}

ANSWERED: Final[dict[str, str]] = {}
"""Ids that no test cites, each with the reason."""


class Coverage:
    """Which ids the collected tests cite."""

    def __init__(self) -> None:
        self._cited: set[str] = set()

    def cite(self, kind: str, cited: str, test: str) -> str | None:
        """Notes that a test cites an id. `kind` is the marker's name: `rule` or `behaviour`.

        Returns:
            a sentence where the id does not exist.
        """
        if cited not in (RULES if kind == "rule" else BEHAVIOURS):
            return f"{test} cites {cited!r}, and tests/behaviours.py has no such {kind}."
        self._cited.add(cited)
        return None

    def lines(self) -> list[str]:
        """How many ids are covered, then each that is not, with what it is about or why."""
        report: list[str] = []
        for name, ids in (("behaviours", tuple(BEHAVIOURS)), ("rules", RULES)):
            missing = [one for one in ids if one not in self._cited]
            report.append(f"{name} covered: {len(ids) - len(missing)} of {len(ids)}")
            told = {one: about for one in missing if (about := _about(one))}
            report.extend(f"  {one:<8} {about}" for one, about in told.items())
            rest = " ".join(one for one in missing if one not in told)
            report.extend(textwrap.wrap(rest, initial_indent="  ", subsequent_indent="  "))
        return report


def _about(one: str) -> str:
    reason = ANSWERED.get(one)
    return BEHAVIOURS.get(one, "") + (f" ({reason})" if reason else "")
