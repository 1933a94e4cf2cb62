"""The card of a data set: what is in it, how it was made, and what it must not be used for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from opsmith.export.pages import render_page
from opsmith.store.rows import RunInfo


def write_card(info: RunInfo, facts: Mapping[str, Any]) -> str:
    """README.md, with the YAML that `datasets` and the Hugging Face Hub read in front."""
    front = {
        "pretty_name": f"Opsmith run {info.id}",
        "language": ["code"],
        "license": "other",
        "license_name": "see-card",
        "tags": ["program-synthesis", info.target, "opsmith", *([] if info.is_language_model else ["not-from-an-llm"])],
        "task_categories": ["text-generation"],
        "configs": [
            {
                "config_name": kind,
                "data_files": [{"split": split, "path": f"data/{kind}/{split}.parquet"} for split in splits],
            }
            for kind, splits in facts["rows"].items()
        ],
    }
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=False)
    splits = list(dict.fromkeys(split for counts in facts["rows"].values() for split in counts))
    return f"---\n{head}---\n\n" + render_page("card.md.jinja", {**facts, "run": info, "splits": splits})
