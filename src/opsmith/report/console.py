"""The console of all commands: tables and displays have our colours, and texts of others have no say in them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderHook
from rich.file_proxy import FileProxy
from rich.segment import Segment
from rich.text import Text

from opsmith.records import printable
from opsmith.terminal import PlainStream, own_stream


class PlainConsole(Console):
    """A console on stdout or stderr that takes text as text: no markup, no emoji codes, no control characters."""

    def __init__(self, stderr: bool = False, is_whole: bool = False, **options: Any) -> None:
        """`is_whole`: lines are as long as what is on them, and no table is cut."""
        file = own_stream(sys.stderr if stderr else sys.stdout)
        super().__init__(file=file, highlight=False, markup=False, emoji=False, soft_wrap=is_whole, **options)
        self.is_whole = is_whole

    def render_str(self, text: str, **options: Any) -> Text:
        """Before it is laid out, so that the widths are those of what is shown."""
        return super().render_str(printable(text, keep="\n\t"), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Whatever is shown passes here, also what was no string; only rich's own segments steer the terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, keep="\n\t"), segment.style)

    def push_render_hook(self, hook: RenderHook) -> None:
        """A live display begins. It shows above itself what is printed meanwhile, and obeys escape sequences in it."""
        super().push_render_hook(hook)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, FileProxy):
                setattr(sys, name, PlainStream(stream))
