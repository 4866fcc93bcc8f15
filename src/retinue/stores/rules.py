"""The rules of the protocol that every store keeps in the same words. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args

from retinue.errors import ConfigError, ConversationBusy, ConversationNotFound
from retinue.messages import Message, new_id
from retinue.messages.codec import encode
from retinue.stores.base import EVERYONE, Asker, EntryState

LONGEST_ID: Final = 1_000
LONGEST_TITLE: Final = 80
MOST_CONNECTIONS: Final = 1_000
_FAR: Final = 2**62  # beyond every position, and within the integers of every database
_STATES: Final = frozenset[str](get_args(EntryState))


def check_id(what: str, text: str) -> None:
    """Refuses an id that no store could hold.

    Raises:
        ConfigError: it is no text, empty, over 1,000 characters, or not valid Unicode.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"The {what} is a text, not {type(text).__name__}.")
    if not text:
        raise ConfigError(f"The {what} is empty; give it at least one character.")
    if len(text) > LONGEST_ID:
        raise ConfigError(
            f"The {what} {quoted(text)} has {len(text):,} characters; {LONGEST_ID:,} is the most."
        )
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ConfigError(
            f"The {what} {quoted(text)} holds a lone surrogate, which is no character; leave it"
            " out."
        )


def check_store(whose: str, store: object) -> None:
    """Refuses what cannot be a store, such as its path or its class.

    Raises:
        ConfigError: names whose it is.
    """
    if isinstance(store, type) or not hasattr(store, "writing"):
        raise ConfigError(
            f"{whose}(store={store!r}) cannot be used; give a store, such as SQLite('chat.db')."
        )


def check_address(conversation: str, owner: Asker) -> None:
    """Refuses the id of a conversation or of its owner where no store could hold it."""
    check_id("conversation id", conversation)
    check_owner(owner)


def check_owner(owner: Asker) -> None:
    """Refuses an owner that no store could hold."""
    if owner is not None and owner is not EVERYONE:
        check_id("owner", owner)


def check_states(states: Mapping[str, EntryState]) -> None:
    """Refuses a state that is none, and ids that cannot be."""
    for name, state in states.items():
        check_id("message id", name)
        if state not in _STATES:
            raise ConfigError(
                f"Message {quoted(name)} cannot have the state {state!r}; the states are"
                f" {', '.join(sorted(map(repr, _STATES)))}."
            )


def check_limit(limit: int | None) -> int:
    """The limit, within the integers of every database; None is all.

    Raises:
        ConfigError: it is negative.
    """
    if limit is None:
        return _FAR
    if limit < 0:
        raise ConfigError(f"limit={limit} is negative; give 0 or more, or None for all.")
    return min(limit, _FAR)


def check_pool(pool: int) -> None:
    """Refuses a number of connections that no store could keep."""
    if type(pool) is not int or not 1 <= pool <= MOST_CONNECTIONS:
        raise ConfigError(
            f"pool={pool!r} makes no sense; give 1 to {MOST_CONNECTIONS:,} connections."
        )


def is_between(value: object, least: float, most: float) -> bool:
    """Whether it is a number, and neither below the one nor above the other."""
    return isinstance(value, int | float) and type(value) is not bool and least <= value <= most


def end_of(before: int | None) -> int:
    """The position that entries must stay below."""
    return _FAR if before is None else max(-_FAR, min(before, _FAR))


def encoded(messages: Sequence[Message]) -> dict[str, tuple[Message, bytes]]:
    """Each message with its stored form, by id; the first of an id counts.

    Raises:
        ConfigError: a message that JSON cannot hold, or what is no list of messages.
    """
    forms: dict[str, tuple[Message, bytes]] = {}
    if isinstance(messages, (str, Message)):
        raise ConfigError(f"append() takes a list of messages, not {type(messages).__name__}.")
    for message in messages:
        if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"append() takes messages, such as user(...), not {type(message).__name__}."
            )
        check_id("message id", message.id)
        if message.id not in forms:
            forms[message.id] = (message, body_of(message))
    return forms


def body_of(message: Message) -> bytes:
    """The stored form of a message.

    Raises:
        ConfigError: JSON cannot hold it: an object in `meta`, or text that is not valid Unicode.
    """
    try:
        return encode(message)
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"Message {quoted(message.id)} holds a lone surrogate, which is no character and cannot"
            " be stored; replace it, e.g. by text.encode('utf-8', 'replace').decode()."
        ) from error
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"Message {quoted(message.id)} cannot be stored as JSON ({error}); keep text, numbers,"
            " lists and dicts in `meta` and `note`."
        ) from error


def question_of(message: Message) -> str:
    """The title that a message gives its conversation; empty if it is no question of the user."""
    if message.role != "user" or message.origin:
        return ""
    # Cut before splitting, so that a pasted book costs no more than a line.
    words = " ".join(message.text[: 4 * LONGEST_TITLE].split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 1].rstrip() + "…"


def first_question(messages: Sequence[Message], after: int) -> tuple[str, int] | None:
    """The first title among messages that take the positions after `after`, and its position."""
    for position, message in enumerate(messages, after + 1):
        if title := question_of(message):
            return title, position
    return None


def may_see(owner: str | None, asking: Asker) -> bool:
    """Whether a conversation of `owner` exists for the one who asks (R-MEM-9)."""
    return asking is EVERYONE or owner == asking


def owner_of_new(conversation: str, owner: Asker) -> str | None:
    """The owner that a new conversation gets. EVERYONE owns nothing and raises ConfigError."""
    if owner is EVERYONE:
        raise ConfigError(
            f"Conversation {quoted(conversation)} is new and cannot belong to everyone; give the"
            " owner it is for, or None."
        )
    return owner


def not_found(conversation: str) -> ConversationNotFound:
    """The same words whether it is missing or somebody else's."""
    return ConversationNotFound(
        f"There is no conversation {quoted(conversation)} for this owner; check the id and the"
        " owner."
    )


def message_not_found(conversation: str, message: str) -> ConversationNotFound:
    """The conversation has no message of that id."""
    return ConversationNotFound(
        f"Conversation {quoted(conversation)} has no message {quoted(message)}; store it with"
        " append first."
    )


def fork_of(conversation: str) -> str:
    """An id for a fork that nobody has named."""
    return f"{conversation[: LONGEST_ID - 40]}~{new_id()}"


def taken(conversation: str) -> ConfigError:
    """A fork may not take the place of a conversation."""
    return ConfigError(
        f"There is a conversation {quoted(conversation)} already; give the fork another id."
    )


def busy(conversation: str) -> ConversationBusy:
    """Somebody else is writing it."""
    return ConversationBusy(
        f"Another turn is writing conversation {quoted(conversation)}; try again when it has"
        " ended, or wait for it with wait=True."
    )


def quoted(text: str) -> str:
    """A text as it may stand in a sentence: printable, and not a page long."""
    return ascii(text) if len(text) <= 80 else f"{text[:77]!a}…"


def chunks(items: Sequence[str], size: int = 500) -> Iterator[Sequence[str]]:
    """The items in pieces that fit the number of parameters of one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
