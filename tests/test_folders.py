"""Where tests stand: a folder of tests is that of a room of the package, or of a kind that asks of the whole house."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
KINDS = {  # what they ask of the whole house
    "chaos": "is anything lost when processes, disks and servers fail?",
    "docs": "does every command on the pages do what stands there?",
    "fuzz": "does any text end in a verdict or a clear error?",
    "hostile": "is every attack refused, and the next verdict right?",
    "integration": "does it work with servers of others?",
    "languages": "does it work in each language, with its compilers and machines?",
    "security": "does anything leave that should not?",
}


def test_each_folder_of_tests_is_that_of_a_room() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py") if "fixtures" not in path.parts}
    strangers = [
        str(folder) for folder in folders if folder.parts and folder.parts[0] not in KINDS and not is_room(folder)
    ]
    assert strangers == []


def is_room(folder: Path) -> bool:
    """Whether a package has a folder or a module of that name; the laboratory's rooms stand under its short name, and
    what a room shows in a browser is tested in a folder `browser` of its own."""
    folder = folder.parent if folder.name == "browser" else folder
    parts = ("opsmith_lab", *folder.parts[1:]) if folder.parts[0] == "lab" else ("opsmith", *folder.parts)
    place = SOURCE.joinpath(*parts)
    return place.is_dir() or place.with_suffix(".py").is_file()


def test_no_kind_is_without_tests() -> None:
    assert [kind for kind in KINDS if not any((TESTS / kind).rglob("test_*.py"))] == []
