"""What every command does, in a line each, and the module that has it: known before any of them is imported."""

from __future__ import annotations

PURPOSE = (
    "Agents write the operator library of a new accelerator. A program counts",
    "when it passes every check and test; what was solved helps with the rest.",
)
GROUPS = {  # group -> command -> module, of this folder where it names no package, and what it does
    "Prepare": {
        "tasks": ("inspecting", "List the bundled tasks, or show one."),
        "models": ("inspecting", "List the models and their keys' state."),
        "prompt": ("writing", "Print what a model would be sent."),
        "manual": ("writing", "Try what of a language's manual a prompt would quote."),
        "devices": ("describing", "Describe this machine; measure what it can do at most."),
        "init": ("starting", "Make a project of your own that works."),
        "new-task": ("starting", "Draft a task from a PyTorch function or module."),
        "import": ("importing", "Turn problems of others into problem files."),
    },
    "Write": {
        "plan": ("planning", "Show how a task can be split."),
        "run": ("running", "Write programs, round by round: ask, judge, ask again."),
        "submit": ("submitting", "Give a run a program of yours while it goes."),
        "pause": ("serving", "Let a run wait: what is in flight is finished, nothing starts."),
        "resume": ("serving", "Let a paused run go on."),
    },
    "Judge": {
        "verify": ("judging", "Judge programs or replies."),
        "check": ("checking", "Judge task files themselves."),
        "reverify": ("exporting", "Judge a run's programs again, by the verifier of today."),
        "mcp": ("hosting", "Serve tasks, checks and verdicts to an agent of yours (MCP)."),
    },
    "Look": {
        "runs": ("inspecting", "List the runs of a store, or delete one."),
        "show": ("showing", "Show a run, a task of it, or a sample."),
        "spent": ("spending", "Show what a run spent, and on what."),
        "compare": ("comparing", "Compare runs: in one table, one figure, task by task."),
        "report": ("reporting", "Write what came of runs."),
        "draw": ("drawing", "Draw what came of one task of a run."),
        "ui": ("serving", "Look at runs in a browser, live, until Ctrl-C."),
    },
    "Keep order": {
        "note": ("remarking", "Write a note on a run, or print it."),
        "tag": ("remarking", "Tag or name a run, or print its tags."),
        "archive": ("remarking", "Hide a run from lists; nothing of it is deleted."),
    },
    "Speed up": {
        "optimise": ("optimising", "Make right programs better, round by round."),
        "measure": ("timing", "Time a right program, or what a run solved, beside another one."),
        "profile": ("profiling", "Say why a right program is as fast as it is."),
        "cost": ("writing", "Print a program's cost figures."),
        "pareto": ("fronts", "Show which right programs of runs no other one beats."),
    },
    "Repeat": {
        "experiment": ("opsmith_lab.cli.experimenting", "Run an experiment of the paper, or a study of models."),
        "bench": ("opsmith_lab.cli.measuring", "Measure verdicts, runs, pages and stores."),
    },
    "Take away": {
        "export": ("exporting", "Take a run's operators or experiences away."),
        "library": ("living", "Keep a library alive: update it, judge it again."),
        "codegen": ("writing", "Write a self-contained test script."),
    },
}
COMMANDS = {
    name: (module if "." in module else f"opsmith.cli.{module}", line)
    for commands in GROUPS.values()
    for name, (module, line) in commands.items()
}
MODULES = tuple(dict.fromkeys(module for module, _ in COMMANDS.values()))
_HEAD = f"""\
Usage: opsmith [OPTIONS] COMMAND [ARGS]...

  {PURPOSE[0]}
  {PURPOSE[1]}

First steps, without a key or a model:
  opsmith run --model embedded --tasks bmm_0,attn_1 --samples 8
  opsmith show          what came of it; then: opsmith ui
  opsmith COMMAND --help

Options:
  --version             Print the version.
  --install-completion  Complete commands, tasks and runs in this shell.
  --show-completion     Print what that would install.
  --help                Show this message and exit.
"""


def find_module(command: str) -> str | None:
    """The module that has a command of that name."""
    return COMMANDS[command][0] if command in COMMANDS else None


def write_overview() -> str:
    """The text of `opsmith --help`."""
    width = max(map(len, COMMANDS))
    sections = [
        "".join([f"\n{group}:\n", *(f"  {name:{width}}  {line}\n" for name, (_, line) in commands.items())])
        for group, commands in GROUPS.items()
    ]
    return _HEAD + "".join(sections)
