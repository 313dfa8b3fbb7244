"""The handlers of what is no page: downloads, pictures, scripts and style sheets."""

import re
from typing import final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from runshelf.store import opening
from runshelf.store.opening import NoFile
from runshelf.web.pages import downloads, run_page, runs_table
from runshelf.web.pages.evidence import saved_comparison, sides_of
from runshelf.web.pages.report import report
from runshelf.web.parameters import chart_view, chosen_subjects, table_view
from runshelf.web.reader import Reader
from runshelf.web.requested import requested_run
from runshelf.web.subjects import runs_of
from runshelf.web.templates import static_files, static_version

_STATIC_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_HTML = "text/html; charset=utf-8"
_MEDIA_NAME = re.compile(r"[0-9a-f]{64}\.(png|webp|jpg|jpeg|gif)")
_IMMUTABLE = {"Cache-Control": "private, max-age=31536000, immutable"}


@final
class FileHandlers:
    """The files of one home, and those of the pages themselves.

    Args:
        reader: reads the home.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def csv(self, request: Request) -> Response:
        """The table as CSV."""
        view = table_view(request.query_params)
        text = await self._reader.query(lambda index: runs_table.csv_of(index, view))
        return downloads.text_download(text, f"{view.show}.csv", "text/csv; charset=utf-8")

    async def run_file(self, request: Request) -> Response:
        """A file of a run as a download; pictures at the top of its folder can be shown."""
        row, path = await requested_run(self._reader, request), request.query_params.get("path", "")
        opening.checked_parts(path)
        extension = path.rpartition(".")[2].lower()
        response = downloads.download
        if "/" not in path and extension in run_page.IMAGES:
            response = downloads.picture
        elif "/" not in path and extension == "svg":
            response = downloads.drawing
        return await self._reader.read(lambda: response(row.folder, path))

    async def run_media(self, request: Request) -> Response:
        """An image or a clip of a run."""
        row, name = await requested_run(self._reader, request), request.path_params["name"]
        if not _MEDIA_NAME.fullmatch(name):
            raise NoFile("not a picture")
        path = f"{run_page.MEDIA}/{name}"
        return await self._reader.read(lambda: downloads.picture(row.folder, path))

    async def report(self, request: Request) -> Response:
        """Runs and groups as one HTML file; several that can be compared, as a comparison."""
        view, chosen = chart_view(request.query_params), chosen_subjects(request, 1, "reported")
        found = await self._reader.query(lambda index: runs_of(index, chosen))
        kinds, reader = [kind for kind, _ in chosen], self._reader
        if len(chosen) > 1:
            sides = await reader.query(lambda index: sides_of(index, chosen))
            text = await reader.read(lambda: saved_comparison(reader.home, sides))
            if text is not None:
                return downloads.text_download(text, "runshelf-comparison.html", _HTML)
        text = await reader.read(lambda: report(reader.home, found, kinds, view, reader.cache))
        return downloads.text_download(text, "runshelf-report.html", _HTML)

    async def static(self, request: Request) -> Response:
        """A script, the style sheet or the icon."""
        name, found = request.path_params["name"], static_files()
        if name not in found or request.path_params["version"] != static_version():
            raise HTTPException(404)
        kind = _STATIC_TYPES[name.rpartition(".")[2]]
        return Response(found[name], media_type=kind, headers=_IMMUTABLE)
