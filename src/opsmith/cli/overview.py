"""What every command does, in a line each, and the module that has it: known before any of them is imported."""

from __future__ import annotations

COMMANDS = {  # module of this package -> its commands
    "inspecting": {
        "tasks": "List the bundled tasks.",
        "models": "List the models and their keys' state.",
        "runs": "List the runs of a store, or delete one.",
        "show": "Show a run or a sample.",
    },
    "remarking": {
        "note": "Write a note on a run, or print it.",
        "tag": "Tag a run, or print its tags.",
        "archive": "Hide a run from lists; nothing of it is deleted.",
    },
    "spending": {"spent": "Show what a run spent, and on what."},
    "judging": {"verify": "Judge programs or replies."},
    "checking": {"check": "Judge task files themselves."},
    "running": {"run": "Improve on tasks, round by round."},
    "planning": {"plan": "Show how a task can be split."},
    "optimising": {"optimise": "Make right programs better, round by round."},
    "experimenting": {"experiment": "Run an experiment of the paper."},
    "reporting": {
        "report": "Write what came of runs.",
        "compare": "Compare two runs of a store, task by task.",
    },
    "drawing": {"draw": "Draw what came of one task of a run."},
    "serving": {
        "ui": "Look at runs in a browser, live, until Ctrl-C.",
        "pause": "Let a run wait: what is in flight is finished, nothing starts.",
        "resume": "Let a paused run go on.",
    },
    "hosting": {"mcp": "Serve tasks, checks and verdicts to an agent of yours (MCP)."},
    "exporting": {
        "export": "Take a run's operators or experiences away.",
        "reverify": "Judge a run's programs again, by the verifier of today.",
    },
    "writing": {
        "prompt": "Print what a model would be sent.",
        "codegen": "Write a self-contained test script.",
        "cost": "Print a program's cost figures.",
    },
    "starting": {
        "init": "Make a project of your own that works.",
        "new-task": "Draft a task file from a PyTorch function.",
    },
    "describing": {"devices": "Describe this machine; measure what it can do at most."},
    "timing": {"measure": "Time a right program, or what a run solved, beside a partner."},
    "profiling": {"profile": "Say why a right program is as fast as it is."},
    "fronts": {"pareto": "Show which right programs of runs no other one beats."},
    "importing": {"import": "Turn problems of others into problem files."},
    "measuring": {"bench": "Measure verdicts, runs, pages and stores."},
}
OVERVIEW = """\
Usage: opsmith [OPTIONS] COMMAND [ARGS]...

  Agents that write the operator library of a new accelerator, prove every
  operator right, and learn.

Options:
  --version  Print the version.
  --help     Show this message and exit.

Commands:
"""


def find_module(command: str) -> str | None:
    """The module that has a command of that name."""
    return next((module for module, commands in COMMANDS.items() if command in commands), None)


def write_overview() -> str:
    """The text of `opsmith --help`."""
    rows = [row for commands in COMMANDS.values() for row in commands.items()]
    width = max(len(name) for name, _ in rows)
    return OVERVIEW + "".join(f"  {name:{width}}  {line}\n" for name, line in rows)
