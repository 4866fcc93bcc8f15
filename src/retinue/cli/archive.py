"""The commands of `retinue conversations` and their options."""

import asyncio
from typing import Annotated

import typer

from retinue.cli import conversations, timeline
from retinue.cli.exits import told
from retinue.cli.options import Database, Debug, Everyone, Id, Json, Owner, Yes
from retinue.errors import ConfigError
from retinue.stores import EVERYONE, Asker

app = typer.Typer(
    help="List, show, fork, cut and remove conversations.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_conversations(
    database: Database = None,
    owner: Owner = None,
    everyone: Everyone = False,
    limit: Annotated[int, typer.Option(help="How many, the latest first.", min=1)] = 100,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List conversations, the one written last first."""
    with told(debug):
        asked = _asker(everyone, owner)
        asyncio.run(conversations.list_all(database, asked, limit, as_json=as_json))


@app.command()
def show(
    conversation: Id,
    database: Database = None,
    owner: Owner = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what was said in a conversation, and what it waits for."""
    with told(debug):
        asyncio.run(conversations.show(database, conversation, owner, as_json=as_json))


@app.command()
def rm(
    ids: Annotated[list[str], typer.Argument(metavar="CONVERSATION...", help="The ids.")],
    database: Database = None,
    owner: Owner = None,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Remove conversations for good."""
    with told(debug):
        conversations.remove(database, ids, owner, yes=yes)


@app.command()
def tree(
    database: Database = None,
    owner: Owner = None,
    everyone: Everyone = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show which conversations were forked from which."""
    with told(debug):
        asked = _asker(everyone, owner)
        asyncio.run(timeline.show_tree(database, asked, as_json=as_json))


@app.command()
def turns(
    conversation: Id,
    database: Database = None,
    owner: Owner = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List the turns of a conversation: where it can be forked and rolled back to."""
    with told(debug):
        asyncio.run(timeline.show_turns(database, conversation, owner, as_json=as_json))


@app.command()
def fork(
    conversation: Id,
    new: Annotated[
        str | None,
        typer.Argument(metavar="NEW", help="The id of the fork; made up by default."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TURN",
            help="The last turn that both have, by its id or its number; by default all of them.",
            show_default=False,
        ),
    ] = None,
    database: Database = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Make a conversation that goes its own way; print its id.

    A fork at the last turn carries along what that waits for; both can be gone on with.
    """
    with told(debug):
        asyncio.run(timeline.fork(database, conversation, new, at, owner))


@app.command()
def rollback(
    conversation: Id,
    to: Annotated[
        str,
        typer.Option(
            metavar="TURN",
            help="The turn that stays as the last, by its id or its number; 0 for none.",
            show_default=False,
        ),
    ],
    database: Database = None,
    owner: Owner = None,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Remove all that came after a turn, for good, and what the conversation waits for."""
    with told(debug):
        timeline.rollback(database, conversation, to, owner, yes=yes)


@app.command()
def prune(
    conversation: Id,
    keep: Annotated[int, typer.Option(help="How many of the latest turns stay.", min=1)],
    database: Database = None,
    owner: Owner = None,
    yes: Yes = False,
    debug: Debug = False,
) -> None:
    """Remove the oldest turns of a conversation, for good."""
    with told(debug):
        timeline.prune(database, conversation, keep, owner, yes=yes)


def _asker(everyone: bool, owner: str | None) -> Asker:
    if everyone and owner is not None:
        raise ConfigError("--everyone lists all owners, so --owner has no use; drop one.")
    return EVERYONE if everyone else owner
