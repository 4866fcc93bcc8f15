"""The commands of `retinue` and their options. What they do stands in rooms of their own."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from retinue.cli import archive, gateways
from retinue.cli.answers import Given, resume_command
from retinue.cli.capabilities import show_capabilities
from retinue.cli.chat import converse
from retinue.cli.exits import told
from retinue.cli.foreground import Foreground
from retinue.cli.keeping import with_memory
from retinue.cli.once import ask_once, question_of
from retinue.cli.options import (
    All,
    Approve,
    Args,
    Conversation,
    Database,
    Debug,
    Events,
    Id,
    Json,
    Model,
    Owner,
    Proceed,
    Reject,
    Reply,
    Retry,
    Target,
    Thinking,
)
from retinue.cli.picture import print_onion
from retinue.cli.plain import JsonLines, print_json
from retinue.cli.replaying import show_replay
from retinue.cli.resuming import go_on
from retinue.cli.serve import key, serve
from retinue.cli.session import Session
from retinue.cli.target import agent_of
from retinue.cli.worker import worker
from retinue.errors import ConfigError
from retinue.version import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 the turn failed, 2 wrong usage or configuration,"
    " 3 stopped by a limit or a block, 4 waiting for answers, 130 interrupted.",
)
app.add_typer(archive.app, name="conversations")
app.command()(serve)
app.command()(worker)
app.command()(key)


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
    at the prompt, Ctrl-D leaves. /help lists what else can be said. Calls that wait for answers
    are asked about; in a pipe, the next lines are the answers.
    """
    with told(debug):
        if no_memory and database is not None:
            raise ConfigError("--no-memory keeps nothing, so --database has no use; drop one.")
        agent = with_memory(agent_of(target), database=database, on_disk=not no_memory)
        with (
            Foreground() as front,
            Session(
                agent, front, conversation=conversation, owner=owner, thinking=thinking
            ) as session,
        ):
            code = converse(session, keep=not no_memory, debug=debug)
        raise typer.Exit(code)


@app.command()
def run(
    question: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    agent: Annotated[
        str | None, typer.Option(help="An agent, as module:agent.", show_default=False)
    ] = None,
    model: Model = None,
    conversation: Conversation = None,
    database: Database = None,
    owner: Owner = None,
    as_json: Events = False,
    thinking: Thinking = False,
    debug: Debug = False,
) -> None:
    """Ask one question and print the answer.

    The answer goes to standard output, all else to standard error. The turn is kept where
    --conversation names a conversation; one that pauses says how to go on with it.
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
            chosen = with_memory(chosen, database=database)
        command = resume_command(
            conversation or "",
            target=agent or model,
            model=model if agent else None,
            database=database,
            owner=owner,
        )
        with Foreground() as front:
            turn = ask_once(
                chosen,
                front.wait(lambda: question_of(question)),
                front,
                conversation=conversation,
                owner=owner,
                as_json=as_json,
                thinking=thinking,
                resume=command,
            )
            code = front.run(turn)
        raise typer.Exit(code)


@app.command()
def resume(
    conversation: Id,
    target: Target = None,
    model: Model = None,
    approve: Approve = None,
    args: Args = None,
    reject: Reject = None,
    reply: Reply = None,
    retry: Retry = None,
    proceed: Proceed = None,
    every: All = False,
    database: Database = None,
    owner: Owner = None,
    as_json: Events = False,
    thinking: Thinking = False,
    debug: Debug = False,
) -> None:
    """Go on with a turn that waits for answers.

    Calls that are not answered wait on. Without any answer it asks at a terminal, and lists what
    waits in a pipe. Options may be repeated.
    """
    with told(debug):
        agent = agent_of(target)
        agent = with_memory(agent.with_(model=model) if model else agent, database=database)
        given = Given(
            approve or (), args or (), reject or (), reply or (), retry or (), proceed or (), every
        )
        view = JsonLines() if as_json else None
        command = resume_command(
            conversation, target=target, model=model, database=database, owner=owner
        )
        with (
            Foreground() as front,
            Session(
                agent, front, conversation=conversation, owner=owner, thinking=thinking, view=view
            ) as session,
        ):
            code = go_on(session, given, as_json=as_json, command=command)
        raise typer.Exit(code)


@app.command()
def replay(
    conversation: Id,
    turn: Annotated[
        str | None,
        typer.Option(help="The turn, by its id or its number; the last one by default."),
    ] = None,
    advisors: Annotated[
        str | None,
        typer.Option(
            help="What has changed: an agent as module:agent, or advisors as module:name.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="The agent that it is compared with, as module:agent. By default the changed one"
            " without its advisors.",
            show_default=False,
        ),
    ] = None,
    database: Database = None,
    owner: Owner = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a recorded turn again with the recorded answers, and show what changed advisors change.

    No model is asked, no tool runs, and nothing is written to the store; advisors do run. What was
    sent is not in the log, so the turn is run twice, on the base and on what has changed.
    """
    with told(debug):
        asyncio.run(
            show_replay(
                database, conversation, turn, owner, base=base, advisors=advisors, as_json=as_json
            )
        )


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
