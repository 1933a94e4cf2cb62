"""The README and the page of commands name commands and options that there are, all commands, and files that exist."""

import re
from pathlib import Path

import pytest
import typer

from opsmith.cli.app import build_app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs/commands.md", ROOT / "docs/choose-your-path.md"]
LINK = re.compile(r"""\]\((?!https?:)([^)\s]+)\)|(?:src|srcset)="([^"]+)\"""")
COMMAND = re.compile(
    r"(?:(?<![\w/.-])opsmith |(?<=[|·] `))([a-z][a-z-]+(?: [a-z][a-z-]*)?)(?=[ `\n])((?:[^`\n|·]|\|(?=\w))*)"
)


@pytest.fixture(scope="module")
def commands():
    """By name, two words for those of a group."""
    found = dict(typer.main.get_command(build_app()).commands)
    for name, command in list(found.items()):
        found |= {f"{name} {inner}": below for inner, below in getattr(command, "commands", {}).items()}
    return found


def named_commands(page, commands):
    """(command, options) of every line of code that names one."""
    for name, rest in COMMAND.findall(page.read_text()):
        known = name if name in commands else name.split()[0]
        yield known, re.findall(r"(?<!\S)(--[a-z][a-z-]+)", rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page, commands):
    for name, options in named_commands(page, commands):
        assert name in commands, f"{page.name}: opsmith {name}"
        have = {
            option for parameter in commands[name].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert set(options) <= {*have, "--help"}, f"{page.name}: opsmith {name}"


def test_no_command_is_missing_on_the_page_of_commands(commands):
    page = ROOT / "docs/commands.md"
    named = {name for name, _ in named_commands(page, commands)}
    groups = {name for name, command in commands.items() if hasattr(command, "commands")}
    hidden = {name for name, command in commands.items() if command.hidden}
    assert set(commands) - groups - hidden - named == set()


def test_the_readme_links_to_what_is_there():
    for target in ("".join(found) for found in LINK.findall((ROOT / "README.md").read_text())):
        name, _, anchor = target.partition("#")
        assert (ROOT / name).is_file(), target
        assert not anchor or anchor in anchors_of(ROOT / name), target


def anchors_of(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
