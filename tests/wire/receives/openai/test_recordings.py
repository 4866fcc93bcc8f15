"""What only the recordings of the Chat Completions format have."""

from tests.wire.receives.openai.recorded import CHAT_COMPLETIONS
from tests.wire.recordings import recordings


def test_errors_within_answers_keep_the_words_of_the_provider() -> None:
    failed = [r for r in recordings("chat_completions") if r.status == 200 and r.expect["error"]]
    assert {r.id for r in failed} >= {
        "53b44413fbf6",
        "a3f82b8b7e16",
        "4ae0bc4ca124",
        "22b0e7d47f0e",
    }
    for recording in failed:
        got = CHAT_COMPLETIONS.decoded(recording)
        words = recording.expect["error"]["message"]
        assert " ".join(words.split())[:200] in str(got.error)
