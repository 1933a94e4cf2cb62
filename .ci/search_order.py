"""A hook of mkdocs: the search names pages for users before pages on design."""

from typing import Any


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    boost = 0.3 if page.file.src_uri.startswith("design/") else 3 if page.file.src_uri == "troubleshooting.md" else 1
    page.meta.setdefault("search", {"boost": boost})
    return markdown
