"""Checks every request and adds security headers to every answer.

Pages of other sites must neither read from this server nor change anything: the Host header is
checked against DNS rebinding, the Origin header and a token against forged requests. Beyond
loopback a cookie is needed as well, which the address with the token sets.
"""

import asyncio
import hmac
import sys
from http.cookies import CookieError, SimpleCookie
from typing import final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runshelf.web.address import Place

LARGEST_BODY = 16 * 1024
TOKEN_HEADER = "X-Backflip-Token"

# Bytes of a too large body that are read, so that the client receives the answer.
_DRAINED = 16 * 1024 * 1024
_BODY_SECONDS = 10.0  # to receive a body
_DRAIN_SECONDS = 1.0  # to receive a too large body
_READS = ("GET", "HEAD")
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
    """A request is refused.

    Attributes:
        status: the HTTP status.
        message: the reason.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@final
class Guard:
    """Passes valid requests on to `app`.

    Args:
        app: the application.
        place: where the server listens.
        has_forms: whether its pages have forms that lead to its other pages.
    """

    def __init__(self, app: ASGIApp, place: Place, *, has_forms: bool = False) -> None:
        self._app = app
        self._place = place
        self._policy = _POLICY.format(forms="'self'" if has_forms else "'none'")
        # Cookies are shared by all ports of a machine, hence the port in the name.
        self._cookie = f"backflip_{place.port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add_headers(message, self._policy)
            await send(message)

        try:
            receive, early = await self._admit(scope, receive)
            await (early or self._app)(scope, receive, send_with_headers)
        except Refusal as refusal:
            answer = JSONResponse(
                {"error": refusal.message, "problem": "door"},
                refusal.status,
                {"Connection": "close"},
            )
            await answer(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001  (no traceback leaves the server)
            sys.stderr.write(f"runshelf.web: unexpected {type(error).__name__}: {error}\n")
            if not started:
                answer = JSONResponse({"error": "internal error of the server"}, 500)
                await answer(scope, receive, send_with_headers)

    async def _admit(self, scope: Scope, receive: Receive) -> tuple[Receive, Response | None]:
        """Return the receiver of the body, and the answer if the guard itself gives it.

        Raises:
            Refusal: the request is not allowed.
        """
        headers = Headers(scope=scope)
        host = self._check_host(headers, scope)
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            raise Refusal(403, f"requests from `{origin[:100]}` are not answered here")
        if not self._place.loopback and (entry := self._check_access(scope, headers)):
            return receive, entry
        if scope["method"] in _READS:
            return receive, None
        _check_write(headers, self._place.token("same-site"))
        return await _read_ahead(headers, receive), None

    def _check_host(self, headers: Headers, scope: Scope) -> str:
        given = headers.getlist("host")
        accepted = self._place.hosts((scope.get("server") or ("",))[0])
        if len(given) == 1 and given[0].lower() in accepted:
            return given[0].lower()
        name = given[0][:100] if given else ""
        port = self._place.port
        raise Refusal(
            421,
            f"`{name}` is not this server: open {self._place.address.partition('?')[0]}; from "
            f"another machine forward the same port on both sides, ssh -L {port}:127.0.0.1:{port}",
        )

    def _check_access(self, scope: Scope, headers: Headers) -> Response | None:
        """Return a redirection that sets the cookie, or None if the request has it.

        Raises:
            Refusal: the request has neither the cookie nor the right token.
        """
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given and scope["path"] == "/":
            if not _same(given[0], self._place.token("address")):
                raise Refusal(403, "the token in the address is wrong: copy the whole address")
            return self._entry()
        if not _same(_cookie(headers, self._cookie), self._place.token("access")):
            raise Refusal(401, "open the address with `?token=` that the server printed")
        return None

    def _entry(self) -> Response:
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self._cookie, self._place.token("access"), httponly=True, samesite="strict", path="/"
        )
        return answer


def _check_write(headers: Headers, token: str) -> None:
    if not _same(headers.get(TOKEN_HEADER, ""), token):
        raise Refusal(403, f"the header {TOKEN_HEADER} is missing or wrong: reload the page")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the request's body must be application/json")


async def _read_ahead(headers: Headers, receive: Receive) -> Receive:
    """Read the body, and return a receiver that passes it on."""
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
    return _handing_over(bytes(body), receive)


def _handing_over(body: bytes, receive: Receive) -> Receive:
    given = False

    async def hand_over() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return hand_over


def _add_headers(message: Message, policy: str) -> None:
    headers = MutableHeaders(scope=message)
    # Files of runs have a stricter policy of their own.
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
