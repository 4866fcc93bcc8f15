"""`retinue chat` without a terminal: one question a line, the answers and nothing else out."""

import pytest

from tests.cli.conftest import Agents, Cli

COUNT = "agent = Agent(Scripted(lambda r: str(len(r.messages)), repeat=True))"

MOODY = """
def answer(request):
    if request.messages[-1].text == "fail":
        return ModelError("The wire is cut; mend it.")
    return "fine"

def doorman(status):
    async def turn(request, call_next):
        return request.refuse("it is late")
    return Layer("doorman", turn=turn)

agent = Agent(Scripted(answer, repeat=True))
shut = agent.with_(advisors=[doorman("blocked")])
"""


@pytest.mark.behaviour("B-ME-1")
def test_each_line_is_a_question_of_one_conversation(cli: Cli, agents: Agents) -> None:
    result = cli("chat", f"{agents(COUNT)}:agent", input="one\n\n  \ntwo\r\nthree")
    assert result.exit_code == 0
    assert result.stdout == "1\n3\n5\n"


def test_a_conversation_goes_on_in_another_run(cli: Cli, agents: Agents) -> None:
    chat = ("chat", f"{agents(COUNT)}:agent", "--conversation", "c")
    assert cli(*chat, input="one\ntwo\n").stdout == "1\n3\n"
    assert cli(*chat, input="three\n").stdout == "5\n"


def test_without_memory_on_disk_the_chat_still_remembers_until_it_ends(
    cli: Cli, agents: Agents
) -> None:
    chat = ("chat", f"{agents(COUNT)}:agent", "--conversation", "c", "--no-memory")
    assert cli(*chat, input="one\ntwo\n").stdout == "1\n3\n"
    assert cli(*chat, input="three\n").stdout == "1\n"
    assert cli("conversations", "list").stdout == ""


def test_a_failed_turn_is_told_and_the_chat_goes_on(cli: Cli, agents: Agents) -> None:
    result = cli("chat", f"{agents(MOODY)}:agent", input="hello\nfail\nhello\n")
    assert result.stdout == "fine\nfine\n"
    assert "retinue: The wire is cut; mend it.\n" in result.stderr
    assert result.exit_code == 1


def test_a_blocked_turn_makes_the_exit_code_3(cli: Cli, agents: Agents) -> None:
    result = cli("chat", f"{agents(MOODY)}:shut", input="hello\n")
    assert result.exit_code == 3
    assert "Blocked by doorman: it is late" in result.stderr


def test_commands_work_in_a_pipe(cli: Cli, agents: Agents) -> None:
    said = "one\n/history\n/model\n/reset\n/history\nanother\n/explain\n/help\n/quit\nnever\n"
    result = cli("chat", f"{agents(COUNT)}:agent", "--conversation", "c", input=said)
    lines = result.stdout.splitlines()
    assert lines[:4] == ["1", "user: one", "assistant: 1", "The model is scripted:script."]
    assert lines[4].startswith("A new conversation: ")
    assert lines[4].endswith("The old one was c.")
    assert lines[5:7] == ["Nothing has been said yet.", "1"]
    assert "Memory → scripted:script" in result.stdout
    for command in ("/help", "/reset", "/explain", "/history", "/model", "/quit"):
        assert f"\n{command}" in result.stdout
    assert result.exit_code == 0


def test_another_model_is_refused_by_name_and_the_old_one_stays(cli: Cli, agents: Agents) -> None:
    result = cli("chat", f"{agents(COUNT)}:agent", input="one\n/model openai:gpt-5-mini\ntwo\n")
    assert result.stdout == "1\n3\n"
    assert "OPENAI_API_KEY" in result.stderr


def test_an_unknown_command_says_which_there_are(cli: Cli, agents: Agents) -> None:
    result = cli("chat", f"{agents(COUNT)}:agent", input="/hlep\n /hlep?\n/history\n")
    assert result.stdout == "1\nuser: /hlep?\nassistant: 1\n"
    assert "There is no command /hlep; there are /help, /reset" in result.stderr


def test_a_foreign_conversation_is_refused_before_the_first_question(
    cli: Cli, agents: Agents
) -> None:
    chat = ("chat", f"{agents(COUNT)}:agent", "--conversation", "c")
    assert cli(*chat, "--owner", "ann", input="one\n").exit_code == 0
    result = cli(*chat, input="two\nthree\n")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("There is no conversation 'c' for this owner") == 1


def test_the_history_of_a_memory_of_another_kind_cannot_be_read(cli: Cli, agents: Agents) -> None:
    own = """
async def turn(request, call_next):
    return await call_next(request)
agent = Agent(Scripted("x"), advisors=[Layer("diary", turn=turn, traits=frozenset({"memory"}))])
"""
    result = cli("chat", f"{agents(own)}:agent", input="/history\nhello\n")
    assert result.stdout == "x\n"
    assert "The memory of 'agent' cannot be read from here" in result.stderr


@pytest.mark.parametrize("option", ["--no-memory", "--database=x.db"])
def test_an_agent_that_remembers_by_itself_takes_no_other_memory(
    cli: Cli, agents: Agents, option: str
) -> None:
    own = 'agent = Agent(Scripted("x"), advisors=[Memory()])'
    result = cli("chat", f"{agents(own)}:agent", option, input="hello\n")
    assert result.exit_code == 2
    assert "keeps its conversations itself" in result.stderr


def test_keeping_nothing_in_a_database_is_refused(cli: Cli, agents: Agents) -> None:
    result = cli("chat", f"{agents(COUNT)}:agent", "--no-memory", "--database", "x.db", input="a")
    assert result.exit_code == 2
    assert "--no-memory keeps nothing, so --database has no use" in result.stderr


def test_without_the_packages_for_a_database_there_is_a_way_out(
    cli: Cli, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retinue.stores.sql.store.importlib.util.find_spec", lambda _: None)
    result = cli("chat", f"{agents(COUNT)}:agent", input="one\n")
    assert result.exit_code == 2
    assert "retinue[sqlite]" in result.stderr
    assert "--no-memory" in result.stderr


def test_a_data_folder_that_cannot_be_made_is_one_sentence(
    cli: Cli, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = agents(COUNT)
    monkeypatch.setenv("XDG_DATA_HOME", f"{name}.py/data")
    result = cli("chat", f"{name}:agent", input="one\n")
    assert result.exit_code == 2
    assert "cannot be made" in result.stderr
    assert "--no-memory" in result.stderr
