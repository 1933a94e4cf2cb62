"""Pictures in prompts: PNG, JPEG or WebP in base64, what they say of their size, and how many tokens they take.

The rules are those of the providers' documents (2026-11). Servers of their protocols may count otherwise; what is
billed is what a reply states.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from math import ceil

LARGEST_PICTURE = 5 * 2**20  # characters of base64: Anthropic's limit, the lowest
WIDEST = 8000  # pixels of a side, likewise
_BEGINNINGS = {"image/png": (0, b"\x89PNG\r\n\x1a\n"), "image/jpeg": (0, b"\xff\xd8\xff"), "image/webp": (8, b"WEBP")}
MEDIA = tuple(_BEGINNINGS)


@dataclass(frozen=True)
class Picture:
    """A picture as the providers take it. Raises ValueError that says why they would not."""

    media: str  # "image/png", "image/jpeg" or "image/webp"
    data: str  # base64, no line breaks

    def __post_init__(self) -> None:
        if self.media not in MEDIA:
            raise ValueError(f"picture: given media {self.media!r}; expected one of {', '.join(MEDIA)}")
        if len(self.data) > LARGEST_PICTURE:
            raise ValueError(f"picture: given {len(self.data)} characters; expected at most {LARGEST_PICTURE}")
        if not all(1 <= side <= WIDEST for side in measure_picture(self)):
            raise ValueError(f"picture: given no {self.media} of at most {WIDEST} x {WIDEST} pixels")


def encode_picture(media: str, content: bytes) -> Picture:
    """A file's content as a picture. Raises ValueError."""
    return Picture(media, base64.b64encode(content).decode("ascii"))


def measure_picture(picture: Picture) -> tuple[int, int]:
    """(width, height) in pixels, as the file itself states them; (0, 0) where it is no file of its kind."""
    try:
        content = base64.b64decode(picture.data, validate=True)
        start, beginning = _BEGINNINGS[picture.media]
        if content[start : start + len(beginning)] != beginning:
            return 0, 0
        readers = {"image/png": _measure_png, "image/jpeg": _measure_jpeg, "image/webp": _measure_webp}
        return readers[picture.media](content)
    except (ValueError, struct.error, IndexError):
        return 0, 0


def _measure_png(content: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", content[16:24])
    return width, height


def _measure_jpeg(content: bytes) -> tuple[int, int]:
    """The sizes of the first frame: before it come segments that state their own lengths."""
    place = 2
    while content[place] == 0xFF:
        kind, length = content[place + 1], int.from_bytes(content[place + 2 : place + 4], "big")
        if 0xC0 <= kind <= 0xCF and kind not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", content[place + 5 : place + 9])
            return width, height
        place += 2 + length
    return 0, 0


def _measure_webp(content: bytes) -> tuple[int, int]:
    kind = content[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", content[26:30])
    return width & 0x3FFF, height & 0x3FFF


def estimate_tiles(picture: Picture) -> int:
    """OpenAI's rule: 85 tokens, and 170 for each tile of 512 pixels, once it fits 2048 and its short side 768.

    GPT-4o's numbers; other models of theirs count up to twice as many.
    """
    width, height = _fit_sides(picture, 2048)
    scale = min(1.0, 768 / min(width, height))
    return 85 + 170 * ceil(width * scale / 512) * ceil(height * scale / 512)


def estimate_area(picture: Picture) -> int:
    """Anthropic's rule: a token for each 750 pixels, once its long side is at most 1568; about 1600 at most."""
    width, height = _fit_sides(picture, 1568)
    return min(1600, ceil(width * height / 750))


def _fit_sides(picture: Picture, longest: int) -> tuple[float, float]:
    """Its sides, scaled down until the longer one is no longer than that."""
    width, height = measure_picture(picture)
    scale = min(1.0, longest / max(width, height))
    return width * scale, height * scale
