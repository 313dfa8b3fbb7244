"""Recognises files that usually hold secrets, by their names and by private keys in them.

Names are compared without regard to case. Files of code are never taken for secrets by their name:
`secrets.py` is code, `secrets.toml` is not.
"""

import os
import re
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

# Patterns with a `/` are compared with the last folder and the name.
SECRET_FILES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pypirc", ".npmrc", ".yarnrc.yml"),
    *(".git-credentials", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto"),
    *(
        ".htpasswd",
        "htpasswd",
        ".htdigest",
        ".dockercfg",
        ".docker/config.json",
        "docker/auth.json",
    ),
    *(".kube/*", "kubeconfig", "kubeconfig.*", "*.kubeconfig", ".aws/*", ".azure/*", "gcloud/*.db"),
    *(".gnupg/*", ".ssh/*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.ppk", "*.pem"),
    *("*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.jceks", "*.bks", "*.keystore", "*.keytab"),
    *("*.kdb", "*.kdbx", "*.agilekeychain", "*.keychain", "*.ovpn", "*.rdp", "*.publishsettings"),
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".terraformrc", "terraform.rc"),
    *(
        "hf_token*",
        ".hf_token*",
        "huggingface/token",
        ".huggingface/*",
        "huggingface/stored_tokens",
    ),
    *("token", "token.txt", "token.json", ".token", "*.token", "kaggle.json", ".databrickscfg"),
    *("auth.json", "gh/hosts.yml", ".dbt/profiles.yml", ".snowsql/config", "rclone.conf"),
    *(".rclone.conf", "sftp-config.json", ".ftpconfig", ".msmtprc", ".fetchmailrc", ".muttrc"),
    *(".vault-token", ".*_history", "cookies", "cookies.txt", "cookies.sqlite", "logins.json"),
    *("*service?account*.json", "*serviceaccount*.json", "*firebase-adminsdk*.json", "key4.db"),
    *("local.settings.json", "accesstokens.json", "secring.*", "krb5cc_*", "*credentials*.json"),
)
_EXAMPLES = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", "*/known_hosts")
# Words that make a file of data a secret one: `db-passwords.yml`, `client_secret_1.json`.
_WORDS = frozenset(
    {"secret", "secrets", "credential", "credentials", "password", "passwords", "passwd"}
    | {"passphrase", "htpasswd"}
)
_PAIRS = frozenset(
    (kind, thing)
    for kind in ("api", "access", "private", "auth", "bot", "hf", "secret", "vault", "bearer")
    for thing in ("key", "keys", "token", "tokens", "pass", "password")
)
_DATA = frozenset(
    {"", "json", "yml", "yaml", "toml", "ini", "cfg", "conf", "config", "properties", "txt", "xml"}
    | {"plist", "env", "secret", "secrets", "password", "credentials", "dat", "bin", "bak", "old"}
)
_WORD = re.compile(r"[a-z]+")
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----\s(?:[\w-]+: .*\s+)*"
    rb"\s*[A-Za-z0-9+/=]{16,}"
    rb"|PuTTY-User-Key-File-\d|\bAGE-SECRET-KEY-1[A-Z0-9]{40,}"
)
_LARGEST_KEY_FILE = 1 << 16


def is_secret_file(path: bytes) -> bool:
    """Return whether a file with this name usually holds secrets."""
    folder, _, last = os.fsdecode(path).lower().rpartition("/")
    within = f"{folder.rpartition('/')[2]}/{last}"
    if any(_matches(within, last, pattern) for pattern in _EXAMPLES):
        return False
    return any(_matches(within, last, p) for p in SECRET_FILES) or _has_secret_name(last)


def has_private_key(path: Path, size: int) -> bool:
    """Return whether a small file has a private key in it; False if it cannot be read."""
    if size > _LARGEST_KEY_FILE:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        return _PRIVATE_KEY.search(file.read(_LARGEST_KEY_FILE)) is not None


def _matches(within: str, last: str, pattern: str) -> bool:
    return fnmatchcase(within if "/" in pattern else last, pattern)


def _has_secret_name(last: str) -> bool:
    """Return whether a file of data has a name made of words for secrets."""
    stem, _, extension = last.lstrip(".").partition(".")
    extension = extension.rpartition(".")[2]
    words = _WORD.findall(stem)
    if extension not in _DATA:
        return False
    return bool(_WORDS.intersection(words)) or any(pair in _PAIRS for pair in pairwise(words))
