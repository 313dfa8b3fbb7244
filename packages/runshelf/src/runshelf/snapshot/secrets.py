"""Finds arguments and environment variables that look like keys, and masks them in text.

Names are split into words: `--api-key`, `apiKey` and `API_KEY` are all `api` and `key`. So
`--keyboard` and `--max-tokens` do not match. Values of a known shape match under any name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, final

from runshelf.snapshot.password_options import find_passwords, mask_passwords

MASK = "***"

# Environment variables that change what a program computes; values of others are not archived.
_RELEVANT = re.compile(
    r"CUDA_VISIBLE_DEVICES|CUBLAS_WORKSPACE_CONFIG|(OMP|MKL|OPENBLAS)_NUM_THREADS|PYTHONHASHSEED"
    r"|PYTHONPATH|PYTHONOPTIMIZE|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|XLA_FLAGS"
    r"|XLA_PYTHON_CLIENT_\w+|JAX_\w+|TF_(XLA|ENABLE|NUM|DETERMINISTIC|CUDNN)_\w+|TORCH_\w+|NCCL_\w+|MUJOCO_GL|PYOPENGL_PLATFORM"
    r"|ROCR_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|LANG|LC_ALL|TZ|SEED|VIRTUAL_ENV|CONDA_DEFAULT_ENV"
    r"|SLURM_(JOB_ID|PROCID|NTASKS|ARRAY_TASK_ID)|RANK|WORLD_SIZE|LOCAL_RANK"
)
_ALWAYS = frozenset({"password", "passwd", "passphrase", "secret", "credential", "credentials"})
_AT_THE_END = frozenset(
    {"key", "token", "auth", "pwd", "apikey", "authtoken", "accesstoken", "secretkey", "accesskey"}
    | {"pass", "pw", "sshpass", "bearer", "pat", "webhook", "webhooks"}
)
# Ambiguous names: they match only if the value looks like a key.
_VAGUE = frozenset({"key", "pat"})
_COOKIES = frozenset({"cookie", "cookies", "sessionid", "phpsessid", "jsessionid", "sessid"})
_STRONG = frozenset({"api", "secret", "access", "private", "auth", "signing", "encryption"})
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]{0,19}|[A-Z]{1,19}|\d{1,15}")
# Words that make a `key` harmless, as in `sort-key`.
_HARMLESS_KEYS = frozenset(
    {"sort", "primary", "foreign", "partition", "cache", "group", "order", "metric", "index", "row"}
    | {"obs", "rng", "random", "prng", "seed", "dict", "hot", "public"}
)
# Last words of names that describe a property of a secret, such as its file or its length.
_ABOUT = frozenset(
    {"file", "path", "dir", "folder", "name", "length", "len", "size", "count", "limit", "type"}
    | {"kind", "id", "env", "var", "prefix", "budget", "sock", "socket", "url", "uri", "host"}
    | {"port", "ttl", "timeout", "expiry", "dim", "embedding", "embeddings"}
)
_NUMBER = re.compile(r"[-+]?(\d[\d_]*)?\.?\d*(e[-+]?\d+)?", re.IGNORECASE)
_PLAIN = frozenset(
    {"", "true", "false", "none", "null", "yes", "no", "on", "off", "auto", "default"}
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SHAPES = re.compile(
    r"\b(?:"
    r"sk-[A-Za-z0-9_-]{16,}|[sr]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9+/=]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
    r"|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|A(?:BIA|CCA)[0-9A-Z]{16}|ya29\.[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|hvs\.[\w-]{20,}"
    r"|(?:gsk|r8|nvapi|xai|pplx|dckr_pat|shpat|dop_v1|figd|lin_api|sntrys|tskey|glrt|wandb_v1)"
    r"[_-][\w-]{20,}|xapp-\d-[\w-]{20,}|dapi[0-9a-f]{32}|\d{8,10}:AA[\w-]{32,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{40,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r")"
)
_PRIVATE_KEY = re.compile(
    r"(?P<before>-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
    r"(?P<secret>(?:(?!-----)[\s\S])+)"
)
_COOKIE = re.compile(
    r"(?P<before>\b(?:Set-)?Cookie2?\\?[\"']?\s*:\s*\\?[\"']?)"
    r"(?P<secret>(?=[^\s=]+=)[^\n\"'\\]+)",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:)(?P<secret>[^\s/@]+)(?=@)")
# In a URL without a password the user name is a token, except for `git`.
_USER_IN_URL = re.compile(
    r"(?P<before>https?://)(?!git@)(?P<secret>[^\s/:@?#]+)(?=:?@)", re.IGNORECASE
)
_IN_QUERY = re.compile(r"(?P<before>[?&;](?P<name>[A-Za-z][\w.-]*)=)(?P<secret>[^\s&;#\"']+)")
_QUERY_NAMES = frozenset({"sig", "signature", "code", "x-amz-signature", "x-amz-credential"})
_HEADER = re.compile(
    r"(?P<before>\b(?:(?:Proxy-)?Authorization|X-(?:[A-Za-z]+-){0,4}(?:Key|Token|Secret))"
    r"\\?[\"']?\s*[:=]\s*\\?[\"']?(?:(?:Bearer|Basic|Token)\s+)?)"
    r"(?P<secret>[^\s\"',\\]+)"
    r"|(?P<scheme>\b(?:Bearer|Basic)\s+)(?P<bare>(?=[^\s\"']*\d)[\w+/=.~-]{8,})",
    re.IGNORECASE,
)
_WEBHOOK = re.compile(
    r"(?P<before>hooks\.slack\.com/services/|/api/webhooks/\d+/)(?P<secret>[\w/-]{8,})"
)
# Settings within a longer argument: a shell command, JSON, a header.
_INNER = (
    re.compile(r"(?<![\w.-])(?P<name>-*[A-Za-z_][\w.-]*)=\\?[\"'](?P<secret>[^\"'\\]+)"),
    # But not a call or a lookup, as in `token=read_token()`.
    re.compile(
        r"(?<![\w.-])(?P<name>-*[A-Za-z_][\w.-]*)=(?P<secret>[^\s\"'&;|,(){}\[\]\\$]++)(?![(\[])"
    ),
    re.compile(r"[\"'](?P<name>[A-Za-z_][\w.-]*)\\?[\"']\s*:\s*\\?[\"'](?P<secret>[^\"'\\]+)"),
    re.compile(r"(?<!\S)(?P<name>--?[A-Za-z][\w-]*)\s+[\"']?(?P<secret>[^\s\"'$-][^\s\"']*)"),
    re.compile(r"\A(?P<name>[A-Za-z][\w-]*):\s*(?P<secret>[^\s/]\S*)\Z"),
)
_LOGIN = re.compile(r"(?P<user>[^\s:/@]+):(?P<password>[^\s/]\S*)")
_SHORTEST = 8  # a shorter value occurs by chance in too many texts


@final
@dataclass(frozen=True)
class Secrets:
    """The secrets in a command line and its environment.

    Attributes:
        names: their names for people: `--api-key`, `env:WANDB_API_KEY`, `argument 3`.
        values: the secrets themselves, longest first; these must never be written.
        argv: the command line with the secrets masked.
    """

    names: tuple[str, ...]
    values: tuple[str, ...]
    argv: tuple[str, ...]

    def mask(self, text: str) -> str:
        """Return `text` with all secrets masked."""
        for value in self.values:
            text = text.replace(value, MASK)
        return mask_shapes(text)

    def mask_all(self, value: Any) -> Any:
        """Return JSON values with all secrets masked."""
        match value:
            case str():
                return self.mask(value)
            case dict():
                fields = cast("dict[str, Any]", value)
                return {self.mask(key): self.mask_all(item) for key, item in fields.items()}
            case list() | tuple():
                return [self.mask_all(item) for item in cast("list[Any]", value)]
            case _:
                return value


def find_secrets(argv: Sequence[str], environ: Mapping[str, str]) -> Secrets:
    """Return the secrets in a command line and its environment."""
    found = [(f"env:{name}", value) for name, value in environ.items() if _is_secret(name, value)]
    of_environment = [value for _, value in found if len(value) >= _SHORTEST]
    shaped = {
        name: value
        for name, value in environ.items()
        if not _is_secret(name, value) and mask_shapes(value) != value
    }
    found += [(f"env:{name}", "") for name in shaped]
    of_environment += [part for value in shaped.values() for part in _shaped(value)]
    masked, of_arguments = _mask_arguments(argv)
    within = [value for argument in masked for value in _mask_within(argument)[1]]
    of_argv = [*(value for _, value in of_arguments), *within]
    values = {*of_environment, *(value for value in of_argv if len(value) >= _SHORTEST)}
    secrets = Secrets((), tuple(sorted(values, key=len, reverse=True)), ())
    for index, argument in enumerate(masked):
        masked[index] = secrets.mask(_mask_within(argument)[0])
        if masked[index] != argument:
            of_arguments.append((_label(argument, index), ""))
    names = dict.fromkeys(name for name, _ in (*of_arguments, *sorted(found)))
    return Secrets(tuple(names), secrets.values, tuple(masked))


def mask_shapes(text: str) -> str:
    """Return `text` with everything masked that is shaped like a key or a password in a URL."""
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(_masked, text)
    text = _COOKIE.sub(_masked, text)
    text = _HEADER.sub(lambda found: (found["before"] or found["scheme"]) + MASK, text)
    text = _WEBHOOK.sub(_masked, _SHAPES.sub(MASK, text))
    if "://" in text:
        text = _USER_IN_URL.sub(_masked, _IN_URL.sub(_masked, text))
    return _IN_QUERY.sub(
        lambda found: _masked(found) if _is_secret_query(found) else found[0], text
    )


def _shaped(value: str) -> list[str]:
    """Return what `mask_shapes` masks in a value, if that is one part of it."""
    before, mask, after = mask_shapes(value).partition(MASK)
    end = len(value) - len(after)
    is_one = mask and MASK not in after and value.startswith(before) and value.endswith(after)
    return [value[len(before) : end]] if is_one and end - len(before) >= _SHORTEST else []


def _masked(found: re.Match[str]) -> str:
    return found["before"] + MASK


def _is_secret_query(found: re.Match[str]) -> bool:
    """Return whether the name of a URL's query parameter marks a secret."""
    name, value = found["name"], found["secret"]
    is_known = name.lower() in _QUERY_NAMES and len(value) >= _SHORTEST
    return is_known or _is_secret(name, value)


def is_relevant(name: str) -> bool:
    """Return whether an environment variable changes what a program computes."""
    return _RELEVANT.fullmatch(name) is not None


def relevant_environment(environ: Mapping[str, str], secrets: Secrets) -> dict[str, str]:
    """Return the variables that change what a program computes, with secrets masked."""
    kept = {name: environ[name] for name in sorted(environ) if is_relevant(name)}
    return {
        name: MASK if _is_secret(name, value) else secrets.mask(value)
        for name, value in kept.items()
    }


def _mask_arguments(argv: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Mask arguments with secret names; return the command line and the (name, value) pairs."""
    masked, found = list(argv), list[tuple[str, str]]()
    for index, argument in enumerate(argv):
        name, equals, value = argument.partition("=")
        if equals and _is_name(name) and _is_secret(name, value):
            masked[index] = f"{name}={MASK}"
            found.append((name, value))
        elif argument.startswith("-") and not equals and index + 1 < len(argv):
            value = argv[index + 1]
            if not value.startswith("-") and _is_secret(name, value):
                masked[index + 1] = MASK
                found.append((name, value))
    for place, start, name in find_passwords(argv):
        found.append((name, argv[place][start:]))
        masked[place] = argv[place][:start] + MASK
    return masked, found


def _mask_within(argument: str) -> tuple[str, list[str]]:
    """Mask secret settings within a longer argument; return it and the masked values."""
    values: list[str] = []

    def mask(found: re.Match[str]) -> str:
        value = found["secret"]
        if value == MASK or not _is_secret(found["name"], value):
            return found[0]
        values.append(value)
        start, end = (place - found.start() for place in found.span("secret"))
        return found[0][:start] + MASK + found[0][end:]

    for pattern in _INNER:
        argument = pattern.sub(mask, argument)
    argument, passwords = mask_passwords(argument, MASK)
    return argument, [*values, *passwords]


def _label(argument: str, index: int) -> str:
    name, equals, _ = argument.partition("=")
    return name if equals and _is_name(name) and mask_shapes(name) == name else f"argument {index}"


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[-+]*[A-Za-z_][\w.+-]*", text) is not None


def _is_secret(name: str, value: str) -> bool:
    """Return whether the name of a value marks it as secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if name in ("PWD", "OLDPWD"):
        return False
    if not words or value.lower() in _PLAIN or value == MASK:
        return False
    if words[-1] in _COOKIES:
        return "=" in value or _looks_like_a_key(value)
    if words[-1] == "login":
        login = _LOGIN.fullmatch(value)
        return login is not None and _NUMBER.fullmatch(login["user"]) is None
    if "webhook" in words and "://" in value:
        return True
    if words[-1] in _ABOUT:
        return False
    if _ALWAYS.intersection(words) or words[-1].endswith(("password", "passwd", "passphrase")):
        return words[-1].endswith(tuple(_ALWAYS)) or _NUMBER.fullmatch(value) is None
    if words[-1] not in _AT_THE_END or (_NUMBER.fullmatch(value) and len(value) < 16):
        return False
    if words[-1] in _VAGUE and not _STRONG.intersection(words):
        return not _HARMLESS_KEYS.intersection(words) and _looks_like_a_key(value)
    return True


def _looks_like_a_key(value: str) -> bool:
    """Return whether a value looks random: long, and neither words nor a number."""
    if len(value) < _SHORTEST or any(letter.isspace() for letter in value):
        return False
    if _NUMBER.fullmatch(value) and len(value) < 16:
        return False
    return not all(_PLAIN_WORD.fullmatch(part) for part in re.split(r"[-_./:,*]", value))
