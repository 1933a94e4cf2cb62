"""The build cache: what is in it is right or missing, it stays small, and several processes may use it at once."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opsmith.targets.native.cache import BuildCache, BuildKey

KEY = BuildKey("problem", "c", "source", "-O3", "gcc 12")


def test_what_was_stored_is_fetched(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path / "builds")
    assert cache.fetch(KEY) is None
    cache.store(KEY, b"artefact")
    assert cache.fetch(KEY) == b"artefact"
    assert BuildCache(tmp_path / "builds").fetch(KEY) == b"artefact"


@pytest.mark.parametrize("part", ["problem", "target", "source", "flags", "compiler"])
def test_each_part_of_the_key_matters(part: str, tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    cache.store(KEY, b"artefact")
    assert cache.fetch(replace(KEY, **{part: "another"})) is None


@pytest.mark.parametrize("content", [b"", b"short", bytes(40)])
def test_a_file_that_was_cut_off_is_missing(content: bytes, tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    cache.store(KEY, b"artefact")
    (tmp_path / KEY.digest).write_bytes(content)
    assert cache.fetch(KEY) is None
    cache.store(KEY, b"artefact")
    assert cache.fetch(KEY) == b"artefact"


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path, largest=3 * 132, interval=1)
    keys = [replace(KEY, source=str(number)) for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cache.store(key, bytes(100))
        os.utime(tmp_path / key.digest, (1000 + age, 1000 + age))
    cache.fetch(keys[0])
    cache.store(keys[3], bytes(100))
    assert [cache.fetch(key) is not None for key in keys] == [True, False, True, True]
    cache.store(replace(KEY, source="large"), bytes(1000))
    assert len(os.listdir(tmp_path)) == 3


def test_what_a_dead_process_left_is_removed(tmp_path: Path) -> None:
    old = tmp_path / "x.unfinished"
    old.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    BuildCache(tmp_path).store(KEY, b"artefact")
    assert os.listdir(tmp_path) == [KEY.digest]


def test_a_disk_that_fails_is_a_cache_that_misses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    cache = BuildCache(tmp_path / "file" / "cache")
    cache.store(KEY, b"artefact")
    assert cache.fetch(KEY) is None


def test_several_processes_at_once(tmp_path: Path) -> None:
    """They overwrite and drop each other's files, and whatever is read is whole."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom opsmith.targets.native.cache import BuildCache, BuildKey\n"
        "cache = BuildCache(Path(sys.argv[1]), largest=20000, interval=1)\n"
        "for number in range(150):\n"
        "    key = BuildKey('p', 'c', str(number % 10), '-O3', 'gcc')\n"
        "    cache.store(key, str(number % 10).encode() * 4000)\n"
        "    for other in range(10):\n"
        "        data = cache.fetch(BuildKey('p', 'c', str(other), '-O3', 'gcc'))\n"
        "        assert data in (None, str(other).encode() * 4000), data[:20]\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert sum(entry.stat().st_size for entry in os.scandir(tmp_path)) <= 20000
