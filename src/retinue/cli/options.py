"""Arguments and options that several commands have."""

from typing import Annotated

import typer

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="An agent as module:agent (or module:function), or a model as provider:model."
        " By default the embedded model.",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="A model, as provider:model; with an agent, instead of the agent's own.",
        show_default=False,
    ),
]
Conversation = Annotated[
    str | None,
    typer.Option(help="The id of the conversation to go on with.", show_default=False),
]
Id = Annotated[str, typer.Argument(metavar="CONVERSATION", help="Its id.")]
Database = Annotated[
    str | None,
    typer.Option(
        help="Where the conversations are: a file of SQLite, postgresql://… or redis://…. By"
        " default what RETINUE_DATABASE says, or a file in your data folder.",
        show_default=False,
    ),
]
Owner = Annotated[str | None, typer.Option(help="Whose conversation it is.", show_default=False)]
Everyone = Annotated[bool, typer.Option("--everyone", help="Those of all owners.")]
Thinking = Annotated[bool, typer.Option("--thinking", help="Show the model's reasoning.")]
Events = Annotated[
    bool, typer.Option("--json", help="Write the events of the turn, one JSON object a line.")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, one object a line.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

Approve = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Let a call run.", show_default=False)
]
Args = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JSON",
        help="What an approved call runs on, in place of the model's arguments.",
        show_default=False,
    ),
]
Reject = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ID=REASON", help="Do not run a call; tell the model why.", show_default=False
    ),
]
Reply = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ID=TEXT",
        help="Do not run a call; this is its result, or the answer to its question.",
        show_default=False,
    ),
]
Retry = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Run a failed call again.", show_default=False),
]
Proceed = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Go on with a call's failure.", show_default=False),
]
All = Annotated[
    bool, typer.Option("--all", help="Approve every other call that waits for approval.")
]
