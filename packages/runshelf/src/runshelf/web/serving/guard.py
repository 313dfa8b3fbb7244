"""Checks every request and adds security headers to every response.

Other sites must neither read from this server nor change anything. The Host header is checked
against DNS rebinding; the Origin header and a token are checked against cross-site request forgery.
A server that listens beyond loopback also requires a cookie, set by the URL with the token.
"""

import asyncio
import hmac
from http.cookies import CookieError, SimpleCookie
from typing import final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runshelf.web.serving.address import Endpoint
from runshelf.web.serving.bounded_log import report

LARGEST_BODY = 16 * 1024
TOKEN_HEADER = "X-Token"

# Bytes of a too large body that are still read, so that the client receives the response.
_DRAINED = 16 * 1024 * 1024
_BODY_SECONDS = 10.0  # time limit to receive a body
_DRAIN_SECONDS = 1.0  # time limit to receive a too large body
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action {forms}; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Refusal(Exception):
    """A request is refused with an HTTP status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@final
class Guard:
    """ASGI middleware that passes only valid requests to the application.

    Args:
        app: the application.
        endpoint: where the server listens.
        has_forms: whether pages may submit forms to this server.
    """

    def __init__(self, app: ASGIApp, endpoint: Endpoint, *, has_forms: bool = False) -> None:
        self._app = app
        self._endpoint = endpoint
        self._policy = _POLICY.format(forms="'self'" if has_forms else "'none'")
        # All ports of a machine share their cookies, so the name contains the port.
        self._cookie = f"runshelf_{endpoint.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add_headers(message, self._policy)
            await send(message)

        try:
            receive, response = await self._check(scope, receive)
            await (response or self._app)(scope, receive, send_with_headers)
        except Refusal as refusal:
            response = JSONResponse(
                {"error": refusal.message, "problem": "door"},
                refusal.status,
                {"Connection": "close"},
            )
            await response(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001  (no traceback leaves the server)
            report(f"runshelf.web: unexpected {type(error).__name__}: {error}")
            if not started:
                response = JSONResponse({"error": "internal error of the server"}, 500)
                await response(scope, receive, send_with_headers)

    async def _check(self, scope: Scope, receive: Receive) -> tuple[Receive, Response | None]:
        """Return the receiver of the body, and a response if the guard handles the request itself.

        Raises:
            Refusal: the request is not allowed.
        """
        headers = Headers(scope=scope)
        host = self._check_host(headers, scope)
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            raise Refusal(403, f"requests from `{origin[:100]}` are not answered here")
        if not self._endpoint.loopback and (login := self._check_access(scope, headers)):
            return receive, login
        if scope["method"] in ("GET", "HEAD"):
            return receive, None
        _check_write(headers, self._endpoint.token("same-site"))
        return await _read_ahead(headers, receive), None

    def _check_host(self, headers: Headers, scope: Scope) -> str:
        given = headers.getlist("host")
        accepted = self._endpoint.hosts((scope.get("server") or ("",))[0])
        if len(given) == 1 and given[0].lower() in accepted:
            return given[0].lower()
        name = given[0][:100] if given else ""
        port = self._endpoint.port
        raise Refusal(
            421,
            f"`{name}` is not this server: open {self._endpoint.address.partition('?')[0]}; from "
            f"another machine forward the same port on both sides, ssh -L {port}:127.0.0.1:{port}",
        )

    def _check_access(self, scope: Scope, headers: Headers) -> Response | None:
        """Return a redirect that sets the cookie, or None if the request has the cookie.

        Raises:
            Refusal: the request has neither the cookie nor the correct token.
        """
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given and scope["path"] == "/":
            if not _same(given[0], self._endpoint.token("address")):
                raise Refusal(403, "the token in the address is wrong: copy the whole address")
            return self._login()
        if not _same(_cookie(headers, self._cookie), self._endpoint.token("access")):
            raise Refusal(
                401, "open the address with `?token=`: the server printed it or named its file"
            )
        return None

    def _login(self) -> Response:
        response = RedirectResponse("/", 303)
        response.set_cookie(
            self._cookie, self._endpoint.token("access"), httponly=True, samesite="strict", path="/"
        )
        return response


def _check_write(headers: Headers, token: str) -> None:
    if not _same(headers.get(TOKEN_HEADER, ""), token):
        raise Refusal(403, f"the header {TOKEN_HEADER} is missing or wrong: reload the page")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the request's body must be application/json")


async def _read_ahead(headers: Headers, receive: Receive) -> Receive:
    """Read the whole body; return a receiver that replays it."""
    body, size = bytearray(), 0
    length = headers.get("content-length", "0")
    too_large = not length.isdecimal() or int(length[:12]) > LARGEST_BODY
    try:
        async with asyncio.timeout(_DRAIN_SECONDS if too_large else _BODY_SECONDS):
            while True:
                message = await receive()
                chunk = message.get("body", b"")
                size += len(chunk)
                too_large = too_large or size > LARGEST_BODY
                if not too_large:
                    body += chunk
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "the connection was lost during the request")
                if size > _DRAINED or not message.get("more_body", False):
                    break
    except TimeoutError:
        if not too_large:
            raise Refusal(408, "the rest of the request did not arrive") from None
    if too_large:
        raise Refusal(413, f"the request is too large: at most {LARGEST_BODY} bytes")
    return _replay(bytes(body), receive)


def _replay(body: bytes, receive: Receive) -> Receive:
    replayed = False

    async def replay() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _add_headers(message: Message, policy: str) -> None:
    headers = MutableHeaders(scope=message)
    # Files of runs already have a stricter policy.
    headers.setdefault("Content-Security-Policy", policy)
    for name, value in _HEADERS.items():
        headers[name] = value
    headers.setdefault("Cache-Control", "no-store")


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
