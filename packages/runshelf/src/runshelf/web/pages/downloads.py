"""Responses with files of a run. Browsers save them and never open them as pages."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from runshelf.store import opening
from runshelf.web.pages.run_page import image_kind

SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_PIECE = 1 << 20
_LARGEST_IMAGE = 32 * 2**20


def picture(folder: Path, path: str) -> Response:
    """Return an image to be shown if the content matches its name, otherwise a download.

    Raises:
        NoFile: the file does not exist.
    """
    data = opening.read(folder, path, _LARGEST_IMAGE)
    kind = image_kind(path, data)
    headers = {"Content-Security-Policy": SANDBOX, "Cache-Control": "private, max-age=3600"}
    if kind is None:
        headers |= _attachment(path)
    return Response(data, media_type=kind or "application/octet-stream", headers=headers)


def drawing(folder: Path, path: str) -> Response:
    """Return an SVG drawing: shown if a page embeds it as an image, otherwise a download.

    As an image and in a sandbox, it cannot run scripts or load anything.

    Raises:
        NoFile: the file does not exist.
    """
    data = opening.read(folder, path, _LARGEST_IMAGE)
    headers = {"Content-Security-Policy": SANDBOX, **_attachment(path)}
    return Response(data, media_type="image/svg+xml", headers=headers)


def download(folder: Path, path: str) -> Response:
    """Return a file as a download.

    Raises:
        NoFile: the file does not exist.
    """
    with opening.opened(folder, path) as descriptor:
        size = os.fstat(descriptor).st_size
        # Closed with its last reference, even if the response is never started.
        file = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    headers = {
        "Content-Security-Policy": SANDBOX,
        "Content-Length": str(size),
        "Accept-Ranges": "none",
        **_attachment(path),
    }

    async def pieces() -> AsyncIterator[bytes]:
        with file:
            position = 0
            while position < size:
                length = min(_PIECE, size - position)
                piece = await asyncio.to_thread(os.pread, file.fileno(), length, position)
                if not piece:
                    break
                position += len(piece)
                yield piece

    return StreamingResponse(pieces(), media_type="application/octet-stream", headers=headers)


def text_download(text: str, name: str, kind: str) -> Response:
    """Return text as a download with a file name and a media type."""
    headers = {"Content-Security-Policy": SANDBOX, **_attachment(name)}
    return Response(text.encode("utf-8", "replace"), media_type=kind, headers=headers)


def _attachment(path: str) -> dict[str, str]:
    name = path.rpartition("/")[2]
    ascii_name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
    quoted = quote(name.encode("utf-8", "replace"), safe="")
    return {
        "Content-Disposition": f'attachment; filename="{ascii_name[-100:]}";'
        f" filename*=UTF-8''{quoted}",
        "X-Content-Type-Options": "nosniff",
    }
