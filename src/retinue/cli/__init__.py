"""The command line: `retinue chat`, `run`, `explain`, `conversations`, `models`.

It is a client of the library like any other and adds no power to it. `main` is the entry, `app`
the commands and their options; each command has a room of its own. Exit codes are in `exits`.
"""
