"""Attacks by requests: paths that lead elsewhere, foreign hosts and origins, wrong tokens."""

import contextlib
import itertools
import random
import socket
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from packages.runshelf.tests.web.pages import serving
from packages.runshelf.tests.web.runs import done
from tests.attack_figures import Tried
from tests.server_client import Server

CANARY = "canary-5d1f0e7a"
UPWARDS = (
    "..",
    "..\\",
    "....",
    "..;",
    "%2e%2e",
    "%252e%252e",
    "%c0%ae%c0%ae",
    ".%00.",
    "．．",
    ".",
)
TARGETS = (
    *("canary.txt", "etc/passwd", "proc/self/environ", "run.json", "index.sqlite", "page.json"),
    *("C:/Windows/win.ini", "canary.txt%00.png", "canary.txt;x=1", "canary.txt%23", "canary.txt/"),
    *("canary.txt::$DATA", "link/canary.txt", "CANARY.TXT", "%63anary.txt", "canary.txt?x"),
)
PREFIXES = (
    *("", "/", "//", "\\", "file://", "file:///", "./", "media/", "code/", "runs/", "%2f", "%5c"),
    *("/proc/self/cwd/", "/dev/fd/3/", "~/", "objects/"),
)
SEPARATORS = ("/", "\\", "%2f", "%5c", "//", "%252f")


def payloads() -> Iterator[str]:
    """Return paths that may lead out of a run, as parts of addresses."""
    for up, target, prefix in itertools.product(UPWARDS, TARGETS, PREFIXES):
        for separator in SEPARATORS:
            depth = 1 + (len(up) + len(target) + len(prefix)) % 5
            yield prefix + (up + separator) * depth + target


def routes(ulid: str, payload: str) -> list[str]:
    encoded = quote(payload, safe="%/\\;")
    return [
        f"/runs/{ulid}/file?path={quote(payload, safe='%')}",
        f"/runs/{ulid}/media/{encoded}",
        f"/runs/{encoded}",
        f"/runs/{ulid}/code?path={quote(payload, safe='%')}&against={quote(payload, safe='')}",
        f"/static/{encoded}",
        f"/static/0/{encoded}",
        f"/{encoded}",
        f"/report?run={quote(payload, safe='%')}",
    ]


class Line:
    """A connection on which requests are sent one after the other; opened again if it is closed."""

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self._open()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def ask(self, path: str, head: str = "", method: str = "GET") -> tuple[int, bytes, bytes]:
        """Send one request; return status, headers and body."""
        host = "" if "Host:" in head else f"Host: 127.0.0.1:{self._port}\r\n"
        request = f"{method} {path} HTTP/1.1\r\n{host}{head}\r\n".encode("utf-8", "replace")
        first = self._first_line(request) or self._first_line(request)
        headers = b"".join(iter(self._file.readline, b"\r\n")).lower()
        length = headers.partition(b"content-length: ")[2].partition(b"\r")[0]
        body = self._file.read(int(length)) if length and method != "HEAD" else b""
        if not length or b"connection: close" in headers:
            self._open_again()
        return int(first.split()[1]), headers, body

    def _first_line(self, request: bytes) -> bytes:
        """Send a request; return the first line of the response, or nothing."""
        try:
            self._socket.sendall(request)
            if first := self._file.readline():
                return first
        except OSError:  # the server closed the connection after its last response
            pass
        self._open_again()
        return b""

    def _open_again(self) -> None:
        self.close()
        self._open()

    def _open(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        self._file = self._socket.makefile("rb")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with runs, and a canary in each place above them."""
    home = tmp_path_factory.mktemp("above") / "home"
    home.mkdir()
    for seed in range(2):
        done(home, seed, group="g", points=3)
    folder = next(home.glob("runs/0*"))
    for above in (home.parent, home, home / "runs", home / "runs" / ".runshelf"):
        above.mkdir(exist_ok=True)
        (above / "canary.txt").write_text(CANARY)
    (folder / "link").symlink_to(home)
    (folder / "media").mkdir(exist_ok=True)
    (folder / "media" / "link").symlink_to(home)
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Generator[Server, None, None]:
    with serving(home) as server:
        yield server


@pytest.fixture(scope="module")
def public(home: Path) -> Generator[Server, None, None]:
    with serving(home, "--host", "0.0.0.0", "--port", "18764") as server:
        yield server


def reads_nothing(server: Server, ulid: str, some: Sequence[str]) -> int:
    """Check that no request reads a file from outside of its run; return their number."""
    with contextlib.closing(Line(server)) as line:
        paths = [path for payload in some for path in routes(ulid, payload)]
        for path in paths:
            status, _, body = line.ask(quote(path, safe="%/\\;?&=:"))
            assert status in (200, 307, 400, 404), (path, status)
            for content in (CANARY.encode(), b"root:x:0", b"SQLite format", b'"secret"'):
                assert content not in body, path
    return len(paths)


@pytest.mark.attack
@pytest.mark.medium
def test_paths_that_lead_elsewhere(server: Server, home: Path, tried: Tried) -> None:
    """A sample; all of them are tried in a slow test."""
    ulid = next(home.glob("runs/0*")).name
    chosen = random.Random(1).sample(sorted(set(payloads())), 100)
    tried(reads_nothing(server, ulid, chosen), "requests for files outside of a run")


@pytest.mark.attack
@pytest.mark.slow
def test_many_paths_that_lead_elsewhere(server: Server, home: Path, tried: Tried) -> None:
    ulid = next(home.glob("runs/0*")).name
    chosen = random.Random(2).sample(sorted(set(payloads())), 2_800)
    tried(reads_nothing(server, ulid, chosen), "requests for files outside of a run")


def foreign_hosts(port: int) -> list[str]:
    """Return values of the Host header that name no address of the server."""
    names = [
        *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil", "0", "::1"),
        *("127.0.0.1@evil.example", "evil.example#127.0.0.1", "127.1", "2130706433", "127.0.0.2"),
        *("0x7f.0.0.1", "[::ffff:127.0.0.1]", "[::2]", "localhost.", "127.0.0.1%00", "192.0.2.1"),
    ]
    here = f"127.0.0.1:{port}"
    ports = [f"127.0.0.1:{number}" for number in (0, 80, 65536)]
    return [
        *(f"{name}:{port}" for name in names),
        *names,
        *ports,
        *(f"{here}0", f"{here}x", f"{here},{here}", "", ":", f":{port}"),
    ]


def foreign_origins(port: int) -> list[str]:
    here = f"127.0.0.1:{port}"
    origins = ["null", "", "http://evil.example", f"https://{here}", f"http://{here}/", f"//{here}"]
    origins += [f"http://{here}.evil.example", f"http://evil.example@{here}", f"http://{here}0"]
    origins += [
        f"http://127.0.0.1:{port + 1}",
        "http://127.0.0.1",
        "file://",
        f"http://[::1]:{port}",
    ]
    return [*origins, f"http://localhost:{port}", f"{here}", f"http://{here} http://{here}", "*"]


PATHS = (
    "/",
    "/stream",
    "/table.csv",
    "/report?group=g",
    "/static/0/x",
    "/nowhere",
    "/group?name=g",
)


METHODS = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "X")
WRONG = (
    *("", "0" * 64, "x" * 63, "é", "\x7f", "null", "a" * 5000, "../..", "%00"),
    "' OR 1=1 --",
)


@pytest.mark.attack
@pytest.mark.medium
def test_foreign_hosts_origins_and_tokens(server: Server, public: Server, tried: Tried) -> None:
    count = sum(
        refused(kind, foreign_heads(kind.port), (400, 401, 403, 421)) for kind in (server, public)
    )
    count += refused(public, wrong_tokens(public.port), (400, 401, 431))
    with contextlib.closing(Line(public)) as line:
        for path, method in itertools.product(PATHS, METHODS):
            assert line.ask(path, "Content-Length: 0\r\n", method)[0] == 401
            count += 1
        for token in WRONG:
            assert line.ask(f"/?token={quote(token)}")[0] in (401, 403)
            count += 1
    tried(count, "requests with a foreign Host, Origin or token")


def foreign_heads(port: int) -> list[str]:
    hosts = [f"Host: {host}\r\n" for host in foreign_hosts(port)]
    return hosts + [f"Origin: {origin}\r\n" for origin in foreign_origins(port)]


def wrong_tokens(port: int) -> list[str]:
    cookies = [f"Cookie: runshelf_{port}={token}\r\n" for token in WRONG]
    return cookies + [f"Authorization: Bearer {token}\r\n" for token in WRONG]


def refused(server: Server, heads: Sequence[str], statuses: Sequence[int]) -> int:
    """Check that requests with each of these headers are refused on all paths; count them."""
    with contextlib.closing(Line(server)) as line:
        for path, head in itertools.product(PATHS, heads):
            status, headers, body = line.ask(path, head)
            assert status in statuses, (path, head, status)
            assert_refused(headers, body)
    return len(PATHS) * len(heads)


def assert_refused(headers: bytes, body: bytes) -> None:
    assert b"set-cookie" not in headers
    assert b"access-control" not in headers
    assert b"runs" not in body or b"error" in body
