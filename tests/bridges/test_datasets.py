"""What `opsmith export --dataset` writes, read by Hugging Face's `datasets`. It runs in the environment of MLflow."""

import json
from pathlib import Path

import pytest
from datasets import load_dataset
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.export.dataset import ExportedData, export_dataset
from opsmith.learn.loop import improve
from opsmith.store import Store


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> ExportedData:
    folder = tmp_path_factory.mktemp("export")
    with Store.open(folder / "runs") as store:
        run = improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess()).run
        return export_dataset(store, run, folder / "data", every=False)


@pytest.mark.parametrize("kind", ["sft", "preferences"])
def test_datasets_reads_the_rows_that_were_written(exported: ExportedData, kind: str, tmp_path: Path) -> None:
    loaded = load_dataset(str(exported.folder), kind, cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in loaded.items()} == exported.rows[kind]
    row = next(iter(loaded.values()))[0]
    written = [
        json.loads(line) for line in (exported.folder / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert row in written
