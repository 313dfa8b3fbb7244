"""Error responses: each exception becomes a page with a status and a message."""

from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from runshelf.errors import UsageError, UserFacingError
from runshelf.store.opening import NoFile
from runshelf.web.reader import Busy
from runshelf.web.templates import render

_MESSAGES = {404: "There is nothing at this address.", 405: "Nothing can be changed here."}


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_default = error.detail in ("Not Found", "Method Not Allowed")
    return _page(error.status_code, _MESSAGES[error.status_code] if is_default else error.detail)


async def _no_file(request: Request, error: Exception) -> Response:
    return _page(404, f"There is no such file: {error}.")


async def _usage_error(request: Request, error: Exception) -> Response:
    return _page(404, str(error))


async def _unavailable(request: Request, error: Exception) -> Response:
    return _page(503, str(error))


def _page(status: int, message: str) -> Response:
    html = render("error.html", message=" ".join(message.split()), live="")
    return HTMLResponse(html.encode("utf-8", "replace"), status)


EXCEPTION_HANDLERS: dict[
    int | type[Exception], Callable[[Request, Exception], Awaitable[Response]]
] = {
    HTTPException: _http_error,
    NoFile: _no_file,
    UsageError: _usage_error,
    UserFacingError: _unavailable,
    Busy: _unavailable,
}
