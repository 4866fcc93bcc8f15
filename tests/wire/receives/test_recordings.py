"""Every recorded answer means here what it means to a decoder that is not ours: in one piece, and
cut anywhere. And every recorded refusal keeps the words of its provider."""

import random

import pytest

from retinue.models import failures
from tests.wire.receives.anthropic.recorded import ANTHROPIC
from tests.wire.receives.decoding import pieces
from tests.wire.receives.gemini.recorded import GEMINI
from tests.wire.receives.openai.recorded import CHAT_COMPLETIONS
from tests.wire.receives.replay import Replay
from tests.wire.receives.responses.recorded import RESPONSES

CUTS = 4  # random ways to cut each stream

FORMS = pytest.mark.parametrize(
    "replay", [ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES], ids=lambda replay: replay.form
)


@FORMS
def test_every_recorded_whole_answer_means_what_it_should(replay: Replay) -> None:
    answers = replay.whole()
    assert len(answers) >= replay.answers
    for recording in answers:
        replay.check(recording, replay.decoded(recording))


@FORMS
@pytest.mark.behaviour("B-US-1", "B-TH-1")
def test_every_recorded_stream_means_what_it_should(replay: Replay) -> None:
    streams = replay.streams()
    assert len(streams) >= min(replay.answers, 40)
    for recording in streams:
        replay.check(recording, replay.decoded(recording))


@FORMS
@pytest.mark.behaviour("B-ST-11")
def test_recorded_streams_mean_the_same_however_they_are_cut(replay: Replay) -> None:
    chance = random.Random(20)
    for recording in replay.streams():
        body = recording.bytes
        for _ in range(CUTS):
            cuts = [chance.randrange(len(body)) for _ in range(chance.randrange(1, 60))]
            replay.check(recording, replay.decoding.stream(pieces(body, cuts)))


@FORMS
@pytest.mark.behaviour("B-ST-11")
def test_short_recorded_streams_mean_the_same_cut_at_every_byte(replay: Replay) -> None:
    short = [r for r in replay.streams() if len(r.bytes) <= replay.short]
    assert len(short) >= 10
    for recording in short:
        body = recording.bytes
        bytewise = [body[n : n + 1] for n in range(len(body))]
        replay.check(recording, replay.decoding.stream(bytewise))
        for cut in range(1, len(body), replay.step):
            replay.check(recording, replay.decoding.stream(pieces(body, [cut])))


@FORMS
@pytest.mark.rule("R-FAIL-3")
def test_every_recorded_refusal_keeps_the_words_of_the_provider(replay: Replay) -> None:
    refusals = replay.refusals()
    assert len(refusals) >= replay.refused
    for recording in refusals:
        error = failures.of_status(replay.decoding.peer, recording.status, {}, recording.bytes)
        value = recording.expect["error"]
        words = value if isinstance(value, str) else value.get("message") or value["detail"]
        assert " ".join(words.split())[:200] in str(error), recording.source
        assert error.status == recording.status
        assert error.retryable is (recording.status == 429)
