"""Error responses: each exception becomes a page with a status and a message."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.opening import NoFile
from runshelf.web.serving.worker_process import Busy
from runshelf.web.templates import render

_MESSAGES = {
    "Not Found": "There is nothing at this address.",
    "Method Not Allowed": "This page can only be read; nothing can be changed here.",
}


async def show_error(request: Request, error: Exception) -> Response:
    """Return a page with the error message."""
    status, message = 503, str(error)
    if isinstance(error, HTTPException):
        status, message = error.status_code, _MESSAGES.get(error.detail, error.detail)
    elif isinstance(error, NoFile):
        status, message = 404, f"There is no such file: {error}."
    elif isinstance(error, UsageError):
        status = 404
    html = render("error.html", message=" ".join(message.split()), live="")
    return HTMLResponse(html.encode("utf-8", "replace"), status)


HANDLED = (HTTPException, NoFile, UsageError, UserFacingError, Busy)
