"""Responses with files of a run: the browser saves them and never opens them as a page."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from runshelf.store import opening
from runshelf.web.run_page import image_kind

SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_PIECE = 1 << 20
_LARGEST_IMAGE = 32 * 2**20


def picture(folder: Path, path: str) -> Response:
    """Return an image of ours to be shown; anything else as a download.

    Raises:
        NoFile: there is no such file.
    """
    data = opening.read(folder, path, _LARGEST_IMAGE)
    kind = image_kind(path, data)
    headers = {"Content-Security-Policy": SANDBOX, "Cache-Control": "private, max-age=3600"}
    if kind is None:
        headers |= _attached(path)
    return Response(data, media_type=kind or "application/octet-stream", headers=headers)


def drawing(folder: Path, path: str) -> Response:
    """Return an SVG drawing: shown where a page embeds it as an image, else a download.

    As an image, and behind a sandbox, it can run nothing and ask for nothing.

    Raises:
        NoFile: there is no such file.
    """
    data = opening.read(folder, path, _LARGEST_IMAGE)
    headers = {"Content-Security-Policy": SANDBOX, **_attached(path)}
    return Response(data, media_type="image/svg+xml", headers=headers)


def download(folder: Path, path: str) -> Response:
    """Return a file as it is, to be saved.

    Raises:
        NoFile: there is no such file.
    """
    with opening.opened(folder, path) as descriptor:
        size = os.fstat(descriptor).st_size
        # Closed with the last reference to it, also where the answer is never begun.
        file = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    headers = {
        "Content-Security-Policy": SANDBOX,
        "Content-Length": str(size),
        "Accept-Ranges": "none",
        **_attached(path),
    }

    async def pieces() -> AsyncIterator[bytes]:
        with file:
            at = 0
            while at < size:
                wanted = min(_PIECE, size - at)
                piece = await asyncio.to_thread(os.pread, file.fileno(), wanted, at)
                if not piece:
                    break
                at += len(piece)
                yield piece

    return StreamingResponse(pieces(), media_type="application/octet-stream", headers=headers)


def saved(text: str, name: str, kind: str) -> Response:
    """Return text of ours to be saved under a name."""
    headers = {"Content-Security-Policy": SANDBOX, **_attached(name)}
    return Response(text.encode("utf-8", "replace"), media_type=kind, headers=headers)


def _attached(path: str) -> dict[str, str]:
    name = path.rpartition("/")[2]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)[-100:]
    quoted = quote(name.encode("utf-8", "replace"), safe="")
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quoted}",
        "X-Content-Type-Options": "nosniff",
    }
