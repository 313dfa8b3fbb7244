"""The channels on which alerts are sent: desktop, a command, SMTP, a webhook.

Nothing here runs in the process of a run, and each channel has a time limit. Passwords come from
environment variables. No message of an error has an address with a secret in it.
"""

import hashlib
import http.client
import json
import os
import shlex
import shutil
import signal
import smtplib
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.message import EmailMessage
from typing import Any, NamedTuple, final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from runshelf.environment import variable
from runshelf.errors import UsageError, UserFacingError, one_line

SECONDS = 10.0  # to connect, and for each answer
DEADLINE = 20.0  # for all of it: a server may send one byte now and then
PASSWORD = "SMTP_PASSWORD"  # RUNSHELF_SMTP_PASSWORD
KINDS = "terminal, desktop, command:PROGRAM, smtp://HOST?to=ADDRESS, https://HOST or env:NAME"
TITLE = "runshelf"


class NotSent(UserFacingError):
    """An alert could not be sent."""


@final
class Channel(NamedTuple):
    """A channel on which alerts are sent.

    Attributes:
        name: what messages call it; never a secret.
        send: sends lines of text; raises an exception if that fails.
        key: what tells it from channels of the same name: a digest of its text.
    """

    name: str
    send: Callable[[Sequence[str]], None]
    key: str = ""


def channel_of(text: str, environ: Mapping[str, str]) -> Channel | None:
    """Return the channel with a text; None for the terminal, which always gets alerts.

    Raises:
        UsageError: the text names no channel, or what the channel needs is missing.
    """
    found = _channel_of(text, environ)
    # An address can be a secret, so that its digest is written down in place of it.
    return found and found._replace(key=hashlib.sha256(text.encode()).hexdigest()[:16])


def _channel_of(text: str, environ: Mapping[str, str]) -> Channel | None:
    if text == "terminal":
        return None
    if text == "desktop":
        return _desktop()
    kind, _, rest = text.partition(":")
    if kind == "env":
        return _from_environment(rest, environ)
    if kind == "command":
        return _command(rest)
    if kind in ("smtp", "smtps"):
        return _smtp(_split(text), environ)
    if kind in ("http", "https"):
        return _webhook(text, _split(text))
    raise UsageError(f"`--to {kind[:40]}` is not a channel for alerts (expected {KINDS})")


def send(channel: Channel, lines: Sequence[str]) -> None:
    """Send lines of text, within a time limit.

    Raises:
        NotSent: it failed, or took too long; the message has no secret.
    """
    failed: list[str] = []

    def work() -> None:
        try:
            channel.send(lines)
        except NotSent as error:
            failed.append(str(error))
        except Exception as error:  # noqa: BLE001  (of any library; its message may have a secret)
            failed.append(type(error).__name__ + _reason(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(DEADLINE)
    if thread.is_alive():
        raise NotSent(f"{channel.name} did not answer within {DEADLINE:g} s")
    if failed:
        raise NotSent(f"{channel.name}: {failed[0]}")


def _reason(error: Exception) -> str:
    """Return what is safe to say of an error: its number, or what the system says of it."""
    if isinstance(error, urllib.error.HTTPError):
        return f" {error.code}"
    if isinstance(error, smtplib.SMTPResponseException):
        return f" {error.smtp_code}"
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, OSError) and inner.strerror:
        return f" ({inner.strerror})"
    return ""


def _from_environment(name: str, environ: Mapping[str, str]) -> Channel:
    value = environ.get(name, "")
    if not value or value.startswith("env:"):
        raise UsageError(
            f"the variable `{name[:60]}` of `--to env:{name[:60]}` is not set: export it"
        )
    try:
        found = channel_of(value, environ)
    except UsageError:
        raise UsageError(f"the variable `{name[:60]}` is not a channel for alerts") from None
    if found is None:
        raise UsageError(f"the variable `{name[:60]}` names the terminal, which always gets alerts")
    return found._replace(name=f"env:{name}")


def _desktop() -> Channel:
    if shutil.which("notify-send"):
        return _program("desktop", ["notify-send", "--", TITLE])
    if shutil.which("osascript"):
        # The text is an argument of the script, not a part of it.
        script = ["-e", "on run a", "-e", "display notification (item 1 of a)", "-e", "end run"]
        return _program("desktop", ["osascript", *script])
    raise UsageError("neither notify-send nor osascript is installed: choose another --to")


def _command(text: str) -> Channel:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"`--to command:` has an open quote: {one_line(error)}") from error
    if not words or shutil.which(words[0]) is None:
        named = words[0][:80] if words else ""
        raise UsageError(f"there is no program `{named}` for `--to command:`; type its path")
    return _program(f"command {words[0]}", words)


def _program(name: str, argv: Sequence[str]) -> Channel:
    """Return a channel that runs a program with the text as its last argument."""

    def call(lines: Sequence[str]) -> None:
        _run([*argv, "\n".join(lines)])

    return Channel(name, call)


def _run(argv: Sequence[str]) -> None:
    """Run a program without a shell; kill it with its children if it takes too long."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise NotSent(f"it did not end within {SECONDS:g} s") from None
    if status:
        raise NotSent(f"it ended with exit status {status}")


def _split(text: str) -> SplitResult:
    try:
        found = urlsplit(text)
        _ = found.port  # raises if it is not a number
    except ValueError:
        found = None
    if found is None or not found.hostname:
        raise UsageError("the address of `--to` has no host; try https://example.org/hook")
    return found


def _smtp(address: SplitResult, environ: Mapping[str, str]) -> Channel:
    if address.password is not None:
        raise UsageError(
            "the address of `--to smtp:` has a password, which other users can read: leave it out "
            f"and export RUNSHELF_{PASSWORD}"
        )
    given = parse_qs(address.query)
    to, user = given.get("to", []), unquote(address.username or "")
    if not to or any(not part.isprintable() or "@" not in part for part in to):
        raise UsageError("`--to smtp:` needs a recipient; try smtp://HOST:25?to=me@example.org")
    sender = given.get("from", [user if "@" in user else to[0]])[0]
    host, port, is_tls = str(address.hostname), address.port, address.scheme == "smtps"
    password = variable(PASSWORD, environ)

    def send_mail(lines: Sequence[str]) -> None:
        message = EmailMessage()
        message["Subject"] = " ".join(f"{TITLE}: {lines[0]}".split())[:200]
        message["From"], message["To"] = sender, ", ".join(to)
        message.set_content("\n".join(lines) + "\n")
        with _smtp_server(host, port, is_tls=is_tls) as server:
            if not is_tls and server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            if user and password:
                _log_in(server, host, user, password)
            server.send_message(message)

    return Channel(f"mail by {host}", send_mail)


def _smtp_server(host: str, port: int | None, *, is_tls: bool) -> smtplib.SMTP:
    if is_tls:
        context = ssl.create_default_context()
        server = smtplib.SMTP_SSL(host, port or 465, timeout=SECONDS, context=context)
    else:
        server = smtplib.SMTP(host, port or 25, timeout=SECONDS)
    server.ehlo()
    return server


def _log_in(server: smtplib.SMTP, host: str, user: str, password: str) -> None:
    """Log in, but send no password in the clear to another machine."""
    is_safe = isinstance(server.sock, ssl.SSLSocket) or host in ("localhost", "127.0.0.1", "::1")
    if not is_safe:
        raise NotSent("it offers no encryption, so the password was not sent: use smtps://")
    server.login(user, password)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A message goes to the address that the user gave, and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Refuse."""


def _webhook(text: str, address: SplitResult) -> Channel:
    host = str(address.hostname)

    def post(lines: Sequence[str]) -> None:
        said = "\n".join(lines)
        # Slack and Mattermost read `text`, Discord reads `content`.
        body = json.dumps({"text": said, "content": said}).encode()
        request = urllib.request.Request(text, body, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(request, timeout=SECONDS):
                pass
        except http.client.HTTPException as error:
            raise NotSent(f"the server sent no valid answer ({type(error).__name__})") from None

    return Channel(f"webhook {host}", post)
