"""Small real pictures, made byte by byte."""

from __future__ import annotations

import base64
import struct
import zlib

from opsmith.models.pictures import Picture, encode_picture

JPEG = base64.b64decode(  # 3 x 2 pixels, grey
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////"
    "////////wAALCAACAAMBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z"
)
WEBP = b"RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f" + ((3 - 1) | (2 - 1) << 14).to_bytes(4, "little") + bytes(9)


def write_png(width: int, height: int, shade: int = 128) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"\0" + bytes([shade]) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def draw_png(width: int = 40, height: int = 30, shade: int = 128) -> Picture:
    return encode_picture("image/png", write_png(width, height, shade))
