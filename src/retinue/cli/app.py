"""The commands of `retinue` and their options. What they do stands in rooms of their own."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from retinue.cli import conversations, gateways
from retinue.cli.capabilities import show_capabilities
from retinue.cli.chat import converse
from retinue.cli.exits import told
from retinue.cli.keeping import with_memory
from retinue.cli.once import ask_once, question_of
from retinue.cli.picture import print_onion
from retinue.cli.plain import print_json
from retinue.cli.session import Session
from retinue.cli.target import agent_of
from retinue.errors import ConfigError
from retinue.stores import EVERYONE
from retinue.version import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 the turn failed, 2 wrong usage or configuration,"
    " 3 stopped by a limit, a block or a pause, 130 interrupted.",
)
log = typer.Typer(
    help="List, show and remove conversations.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(log, name="conversations")

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="An agent as module:agent (or module:function), or a model as provider:model."
        " By default the embedded model.",
        show_default=False,
    ),
]
Conversation = Annotated[
    str | None,
    typer.Option(help="The id of the conversation to go on with.", show_default=False),
]
Database = Annotated[
    Path | None,
    typer.Option(
        help="The SQLite file of the conversations. By default RETINUE_DATABASE, or a file in"
        " your data folder.",
        show_default=False,
    ),
]
Owner = Annotated[str | None, typer.Option(help="Whose conversation it is.", show_default=False)]
Thinking = Annotated[bool, typer.Option("--thinking", help="Show the model's reasoning.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, one object a line.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def retinue(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Layers (advisors) round a language model: talk to one, and see what surrounds it."""


@app.command()
def chat(
    target: Target = None,
    conversation: Conversation = None,
    database: Database = None,
    owner: Owner = None,
    no_memory: Annotated[
        bool, typer.Option("--no-memory", help="Keep nothing: the chat ends with the program.")
    ] = False,
    thinking: Thinking = False,
    debug: Debug = False,
) -> None:
    """Chat with an agent or a model, in a terminal or with one question a line from a pipe.

    The conversation is kept, unless the agent has a memory of its own. Ctrl-C cancels the answer;
    at the prompt, Ctrl-D leaves. /help lists what else can be said.
    """
    with told(debug):
        if no_memory and database is not None:
            raise ConfigError("--no-memory keeps nothing, so --database has no use; drop one.")
        agent = with_memory(agent_of(target), file=database, on_disk=not no_memory)
        with Session(agent, conversation=conversation, owner=owner, thinking=thinking) as session:
            code = converse(session, keep=not no_memory, debug=debug)
        raise typer.Exit(code)


@app.command()
def run(
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    agent: Annotated[
        str | None, typer.Option(help="An agent, as module:agent.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A model, as provider:model; with --agent, instead of the agent's own.",
            show_default=False,
        ),
    ] = None,
    conversation: Conversation = None,
    database: Database = None,
    owner: Owner = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the events of the turn, one JSON object a line.")
    ] = False,
    thinking: Thinking = False,
    debug: Debug = False,
) -> None:
    """Ask one question and print the answer.

    The answer goes to standard output, all else to standard error. The turn is kept where
    --conversation names a conversation.
    """
    with told(debug):
        if database is not None and conversation is None:
            raise ConfigError(
                "--database keeps a conversation; name it with --conversation, or drop --database."
            )
        chosen = agent_of(agent or model)
        if agent is not None and model is not None:
            chosen = chosen.with_(model=model)
        if conversation is not None:
            chosen = with_memory(chosen, file=database)
        turn = ask_once(
            chosen,
            question_of(question),
            conversation=conversation,
            owner=owner,
            as_json=as_json,
            thinking=thinking,
        )
        raise typer.Exit(asyncio.run(turn))


@app.command()
def explain(target: Target = None, as_json: Json = False, debug: Debug = False) -> None:
    """Show the layers round an agent's model, and what is probably wrong with them."""
    with told(debug):
        agent = agent_of(target)
        if as_json:
            print_json(agent.explain())
        else:
            print_onion(Console(), agent)


@app.command()
def models(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A model as provider:model, or a provider: what it takes, as far as it is"
            " declared. '?' is not known, and sent as it is asked for.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List where models can be had, and whether their keys are set; or show what a model takes."""
    with told(debug):
        if model is None:
            gateways.list_places(as_json=as_json)
        else:
            show_capabilities(model, as_json=as_json)


@log.command("list")
def list_conversations(
    database: Database = None,
    owner: Owner = None,
    everyone: Annotated[bool, typer.Option("--everyone", help="Those of all owners.")] = False,
    limit: Annotated[int, typer.Option(help="How many, the latest first.", min=1)] = 100,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """List conversations, the one written last first."""
    with told(debug):
        if everyone and owner is not None:
            raise ConfigError("--everyone lists all owners, so --owner has no use; drop one.")
        asked = EVERYONE if everyone else owner
        asyncio.run(conversations.list_all(database, asked, limit, as_json=as_json))


@log.command()
def show(
    conversation: Annotated[str, typer.Argument(help="Its id.")],
    database: Database = None,
    owner: Owner = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what was said in a conversation."""
    with told(debug):
        asyncio.run(conversations.show(database, conversation, owner, as_json=as_json))


@log.command()
def rm(
    ids: Annotated[list[str], typer.Argument(metavar="CONVERSATION...", help="The ids.")],
    database: Database = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Remove conversations for good."""
    with told(debug):
        asyncio.run(conversations.remove(database, ids, owner))
