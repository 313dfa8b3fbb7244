"""The runs and groups that a request names."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from runshelf.index.rows import RunRow
from runshelf.web.parameters import Chosen, chosen_subjects
from runshelf.web.reader import Reader
from runshelf.web.subjects import row_of_run

Handler = Callable[[Request], Awaitable[Response]]


async def requested_run(reader: Reader, request: Request) -> RunRow:
    """Return the run whose id, part of an id or name is in the path of a request."""
    run = request.path_params["run"]
    return await reader.query(lambda index: row_of_run(index, run))


def requested_subjects(request: Request) -> Chosen:
    """Return the runs and groups that a page shows."""
    if "run" in request.path_params:
        run = ("run", request.path_params["run"])
        against = request.query_params.get("against")
        is_code = request.url.path.endswith("/code")
        return (run, ("run", against)) if is_code and against else (run,)
    if request.url.path == "/group":
        return (("group", request.query_params.get("name", "")),)
    return chosen_subjects(request, 0, "shown")
