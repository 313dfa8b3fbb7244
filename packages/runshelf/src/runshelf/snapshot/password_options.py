"""Finds passwords by the short options that programs take them with: `-pSECRET`, `-u user:pw`.

The same letter means something else in most programs (`-p 0.1`, `docker run -p 80:80`), so a letter
counts only after a program that is known for it, or if the value cannot be anything else.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, final

_MYSQL = ("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mycli")
_MONGO = ("mongo", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport")
_SQL_SERVER = ("sqlcmd", "bcp", "isql", "osql")
# Options whose password is in the same argument.
_ATTACHED = {
    **dict.fromkeys((*_MYSQL, *_MONGO, "sshpass"), ("-p",)),
    **dict.fromkeys(("7z", "7za", "7zr", "rar", "unrar"), ("-hp", "-p")),
    **dict.fromkeys(("zip", "unzip", *_SQL_SERVER), ("-P",)),
}
# Options whose password is the next argument.
_FOLLOWING = {
    **dict.fromkeys((*_MONGO, "sshpass", "twine", "cqlsh", "influx", "login"), ("-p",)),
    **dict.fromkeys(("zip", "unzip", "mosquitto_pub", "mosquitto_sub", "ipmitool"), ("-P",)),
    **dict.fromkeys(_SQL_SERVER, ("-P",)),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), ("-w",)),
    "redis-cli": ("-a",),
    "ssh-keygen": ("-N", "-P"),
    "curl": (),
}
_LOGIN_OPTIONS = frozenset({"-u", "-U", "--user", "--proxy-user"})
_TAKES_LOGINS = frozenset({"curl", "wget", "http", "https", "xh", "ab", "smbclient"})
_TAKES_GROUPS = frozenset(
    {"docker", "podman", "nerdctl", "kubectl", "chown", "su", "sudo", "setpriv", "runuser"}
    | {"install", "gosu", "su-exec", "apptainer", "singularity", "rsync", "unshare"}
)
_KNOWN = frozenset({*_ATTACHED, *_FOLLOWING, *_TAKES_LOGINS, *_TAKES_GROUPS})
_LOGIN = re.compile(r"(?P<user>[^\s:/@=]*[^\s\d:/@=][^\s:/@=]*)[:%](?P<password>[^\s/:][^\s:]*)")
_NUMBER = re.compile(r"[-+]?[\d_.,:x]*(?:e[-+]?\d+)?", re.IGNORECASE)
_LONGEST_COMMAND = 10_000  # characters whose quotes are read, which is slow
_LONGEST_LOGIN = 500  # longer texts would take quadratic time
_LONGEST = 64  # characters of a password that is recognised by its look
# What no other value of a short option looks like: `SECRET`, `S3cret!pass`, `s3cr3t-word`.
_ODD = re.compile(
    r"[A-Z]{6,}|(?=\S*\d)(?=\S*[A-Z!@#$%^&*])(?=\S*[a-z])[^\s=/]{8,}"
    r"|(?=\S*(?:[A-Za-z]+\d+){2}[A-Za-z])[^\s=/]{8,}"
)


@final
class Found(NamedTuple):
    """A password in a command line.

    Attributes:
        place: the index of its argument.
        start: where it starts in the argument; it reaches to the end.
        name: the option, for people.
    """

    place: int
    start: int
    name: str


def find_passwords(argv: Sequence[str]) -> Iterator[Found]:
    """Yield the passwords that short options of a command line take."""
    program, has_user = "", any(word in _LOGIN_OPTIONS for word in argv)
    for place, word in enumerate(argv):
        before = argv[place - 1] if place else ""
        if before in _FOLLOWING.get(program, ()) and not word.startswith("-"):
            yield Found(place, 0, before)
        elif before in _LOGIN_OPTIONS and (start := _login(word, program)):
            yield Found(place, start, before)
        elif word.startswith("--user=") and (start := _login(word[7:], program)):
            yield Found(place, start + 7, "--user")
        elif before.startswith("-pass") and word.startswith("pass:"):
            yield Found(place, 5, before)
        elif before == "-b" and program == "curl" and "=" in word:
            yield Found(place, 0, before)
        elif start := _attached(word, program, has_user):
            yield Found(place, start, word[:start])
        name = word.rpartition("/")[2]
        program = name if name in _KNOWN and not word.startswith("-") else program


def mask_passwords(command: str, mask: str) -> tuple[str, list[str]]:
    """Mask the passwords in the text of a command; return it and the passwords."""
    if " -" not in command:
        return command, []
    words = _words_of(command)
    masked = {words[place]: words[place][:start] for place, start, _ in find_passwords(words)}
    for word, kept in masked.items():
        command = command.replace(word, kept + mask)
    return command, [word[len(kept) :] for word, kept in masked.items()]


def _words_of(command: str) -> list[str]:
    if len(command) <= _LONGEST_COMMAND:
        with suppress(ValueError):  # quotes that do not close
            return shlex.split(command)
    return command.split()


def _login(word: str, program: str) -> int:
    """Return where the password of `user:password` starts; 0 if it is something else."""
    found = _LOGIN.fullmatch(word) if len(word) <= _LONGEST_LOGIN else None
    if found is None or program in _TAKES_GROUPS:
        return 0
    is_number = _NUMBER.fullmatch(found["password"]) is not None
    if program not in _TAKES_LOGINS and (is_number or "%" in word.partition(":")[0]):
        return 0
    return found.start("password")


def _attached(word: str, program: str, has_user: bool) -> int:
    """Return where the password starts that is in one argument with its option; else 0."""
    if not word.startswith("-") or word.startswith("--"):
        return 0
    for option in _ATTACHED.get(program, ()):
        if word.startswith(option) and len(word) > len(option):
            return len(option)
    if program == "curl" and word.startswith("-u") and (start := _login(word[2:], program)):
        return start + 2
    value = word[2:]
    if not word.startswith("-p") or len(value) > _LONGEST or _NUMBER.fullmatch(value):
        return 0
    is_plain = has_user and program not in _TAKES_GROUPS and re.fullmatch(r"[^\s=/]{4,}", value)
    return 2 if is_plain or _ODD.fullmatch(value) else 0
