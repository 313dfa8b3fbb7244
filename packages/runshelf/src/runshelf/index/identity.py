"""What a run computes: settings without seeds, code, and the packages that compute results.

Runs of one group agree in all three, and may differ in their seeds only.
"""

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeGuard, cast, final

from runshelf.errors import UserFacingError
from runshelf.received_json import list_of, mapping_of
from runshelf.snapshot.code_snapshot import CODE, CodeFile, read_snapshot
from runshelf.store.machine_metrics import may_be_measured
from runshelf.store.summary import Summary

UNKNOWN = ""
IMPORT = "import"

_SEED = re.compile(r"(?:.*[._-])?seeds?", re.IGNORECASE)
_PYTHON = re.compile(r"python[\d.]*")
# Endings of files that are not code: documents, tables, pictures, weights, databases.
_NOT_CODE = re.compile(
    r"\.(?:md|rst|txt|adoc|org|tex|pdf|html|css|docx?|odt|bib|rtf"
    r"|csv|tsv|log|out|err|jsonl|ndjson|xlsx?|parquet|arrow|feather"
    r"|png|jpe?g|gif|webp|svg|bmp|ico|mp4|webm|avi|mov|wav|mp3"
    r"|np[yz]|pth?|ckpt|safetensors|onnx|h5|hdf5|pkl|pickle|joblib|bin|mat|msgpack"
    r"|zip|gz|tar|zst|xz|bz2|7z|db|sqlite3?|sqlite-wal|sqlite-shm|lock|pid|tmp|bak|swp)"
)
_DOCUMENTS = frozenset({"license", "licence", "readme", "notes", "todo", "changelog", "authors"})
# Packages whose version can change a result. A tool such as a linter cannot.
_COMPUTING = re.compile(
    r"(?:backflip|numpy|scipy|numba|cupy.*|triton|nvidia-.*|jax.*|flax|optax|dm-.*|distrax|rlax"
    r"|chex|equinox|brax|gymnax|rejax|torch|torchvision|torchrl|tensordict|tensorflow.*|keras"
    r"|scikit-learn|pandas|polars|opencv-.*|pillow|imageio|gym|gymnasium.*|gym-.*|gym3|ale-py"
    r"|atari-py|mujoco.*|pybullet|box2d.*|minigrid|procgen.*|envpool|pettingzoo|supersuit"
    r"|metaworld|crafter|highway-env|stable-baselines3|sb3-.*|sbx.*|rl-zoo3|tianshou|ray|skrl"
    r"|tf-agents|acme|dopamine-rl|cleanrl|transformers|peft|trl|accelerate)"
)


@final
class Identity(NamedTuple):
    """What a run computes, as digests; a part that was not recorded is `UNKNOWN`.

    Attributes:
        configuration: its settings, environment and command line, without seeds.
        code: the files of its code.
        packages: the versions of the packages that compute results.
    """

    configuration: str
    code: str
    packages: str


def identity_of(folder: Path, manifest: Mapping[str, Any]) -> Identity:
    """Return the identity of the run in `folder`, which has this manifest."""
    packages = computing(packages_of(manifest))
    return Identity(
        _digest(configuration_of(manifest)),
        _digest_of_code(folder, _stamp(folder / CODE)),
        _digest(packages) if packages else UNKNOWN,
    )


def configuration_of(manifest: Mapping[str, Any]) -> dict[str, object]:
    """Return everything that the user chose about a run except its seeds, by name.

    An import has the settings that its files hold; without any, its folder stands for them.
    """
    config = without_seeds(manifest.get("config") or {})
    chosen: dict[str, object] = {
        "command": manifest.get("command"),
        "algorithm": manifest.get("algorithm"),
        "env": manifest.get("env"),
        "config": config,
    }
    if manifest.get("command") == IMPORT:
        if not has_settings(manifest):
            return {"command": IMPORT, "source": source_of(manifest)}
        return chosen | {"kind": mapping_of(manifest.get("imported")).get("kind")}
    if manifest.get("env"):
        return chosen
    snapshot = mapping_of(manifest.get("snapshot"))
    return chosen | {"argv": argv_without_seeds(manifest), "folder": snapshot.get("cwd")}


def has_settings(manifest: Mapping[str, Any]) -> bool:
    """Return whether an import has settings other than those that its folder's name tells."""
    config = without_seeds(manifest.get("config") or {})
    return isinstance(config, dict) and bool(config.keys() - {"exp_name"})


def source_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the folder that a run was imported from; None for other runs."""
    source = mapping_of(manifest.get("imported")).get("from")
    return source if isinstance(source, str) and source else None


def label_of(manifest: Mapping[str, Any]) -> str:
    """Return the short form of an import's folder, which no other import of the home has."""
    label = mapping_of(manifest.get("imported")).get("label")
    if isinstance(label, str) and label:
        return label
    return PurePosixPath(source_of(manifest) or IMPORT).name


def seeds_of(manifest: Mapping[str, Any]) -> list[int]:
    """Return the seeds of a run: recorded, else in its settings, else in its variable `SEED`."""
    recorded = [seed for seed in list_of(manifest.get("seeds")) if _is_seed(seed)]
    if recorded:
        return recorded
    found = dict(_seed_settings(manifest.get("config")))
    variable = mapping_of(manifest.get("environment")).get("SEED")
    named = found.get("seed", next(iter(found.values()), variable))
    if isinstance(named, str) and re.fullmatch(r"-?\d{1,18}", named):
        named = int(named)
    return [named] if _is_seed(named) else []


def code_of(folder: Path) -> dict[str, str] | None:
    """Return the content of each file of a run's code by path; None if it was not recorded.

    Files that are not code are left out: their content may differ between runs of a group.
    """
    files = files_of(folder)
    return None if files is None else {p: f for p, f in files.items() if is_code(p)}


def files_of(folder: Path) -> dict[str, str] | None:
    """Return the content of each archived file by path, as a hash; None without a snapshot."""
    try:
        return {file.path: _content(file) for file in read_snapshot(folder).files}
    except UserFacingError:
        return None


def is_code(path: str) -> bool:
    """Return whether a file of a snapshot is code, a configuration or of an unknown kind."""
    parts = PurePosixPath(path.lower())
    of_git = any(part.startswith(".git") for part in parts.parts)
    other = _NOT_CODE.fullmatch(parts.suffix) or parts.name in _DOCUMENTS
    return not (of_git or other or "tfevents" in parts.name)


def packages_of(manifest: Mapping[str, Any]) -> dict[str, object]:
    """Return package versions by name: of the program's Python, else of the recorder's."""
    python = manifest.get("python")
    if not isinstance(python, dict):
        return dict(mapping_of(manifest.get("versions")))
    fields = cast("dict[str, Any]", python)
    return {"python": fields.get("version"), **mapping_of(fields.get("packages"))}


def computing(packages: Mapping[str, object]) -> dict[str, object]:
    """Return the packages whose versions can change results."""
    named = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in packages.items()}
    return {name: named[name] for name in sorted(named) if _COMPUTING.fullmatch(name)}


def content_of(summaries: Mapping[str, Summary]) -> str:
    """Return a digest of a run's metrics without measured times; empty if there is no other."""
    computed = {
        name: [repr(float(x)) for x in (one.last, one.minimum, one.maximum, one.mean, one.count)]
        for name, one in summaries.items()
        if not may_be_measured(name)
    }
    return _digest(computed) if computed else UNKNOWN


def is_seed_key(key: str) -> bool:
    """Return whether a setting is a seed: `seed`, `seeds`, `env_seed`, `train.seed`."""
    return _SEED.fullmatch(key) is not None


def without_seeds(config: Any) -> Any:
    """Return a configuration without its seeds, at any depth."""
    if not isinstance(config, Mapping):
        return config
    fields = cast("Mapping[Any, Any]", config)
    return {k: without_seeds(value) for k, value in fields.items() if not is_seed_key(str(k))}


def argv_without_seeds(manifest: Mapping[str, Any]) -> list[str]:
    """Return a command line without `--seed 3`, `--seed=3` and `seed=3`; any Python is `python`."""
    kept: list[str] = []
    skips = False
    for word in [str(word) for word in manifest.get("argv") or ()]:
        key, equals, _ = word.lstrip("-+").partition("=")
        is_seed = is_seed_key(key)
        if skips:
            skips = False
        elif is_seed and (equals or word.startswith("-")):
            skips = not equals
        else:
            kept.append(word)
    if kept and _PYTHON.fullmatch(PurePosixPath(kept[0]).name):
        kept[0] = "python"
    return kept


@functools.lru_cache(maxsize=256)  # the entry of a running run is read every few seconds
def _digest_of_code(folder: Path, _: tuple[int, int] | None) -> str:
    files = code_of(folder)
    return UNKNOWN if files is None else _digest(files)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _seed_settings(config: Any) -> Iterator[tuple[str, object]]:
    """Yield the seeds of a configuration with their names, the outermost first."""
    fields = mapping_of(config)
    for key, value in fields.items():
        if is_seed_key(key):
            yield key.rpartition(".")[2].lower(), value
    for value in fields.values():
        if isinstance(value, Mapping):
            yield from _seed_settings(value)


def _content(file: CodeFile) -> str:
    return file.sha256 if file.link is None else f"link to {file.link}"


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _is_seed(value: object) -> TypeGuard[int]:
    return type(value) is int and abs(value) < 2**63
