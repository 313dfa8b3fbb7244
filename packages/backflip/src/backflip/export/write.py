"""Writes a policy as two files: `.npz` with weights and operations, `.py` that acts with them."""

import ast
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from backflip.core import spaces
from backflip.core.spec import EnvSpec
from backflip.export import numpy_policy
from backflip.export.program import Program, record
from backflip.training.policy import POLICY, load_saved_policy, refuse_without_policy, seed_of
from runshelf.errors import UsageError
from runshelf.store.paths import exists
from runshelf.store.records import to_json
from runshelf.store.run import Run
from runshelf.store.writing import write_whole

SUFFIX = ".npz"
FIRST_LINE = '"""Written by `backflip export-policy`: acts with the policy in the .npz file."""'


class Exported(NamedTuple):
    """The files written, and the seed whose policy they hold."""

    policy: Path
    program: Path
    seed: int


def export_policy(run: Run, path: Path, seed: int | None = None) -> Exported:
    """Write the last policy of one seed of a run, by default the first, for use without JAX.

    Args:
        run: a run of `train` or `teach`.
        path: the file for the policy, which ends in `.npz`; the program gets the same name with
            `.py`.
        seed: the seed.

    Raises:
        UsageError: the name does not end in `.npz`, the `.py` file is another program's, the run
            has no policy or no such seed, or NumPy cannot compute the policy's network.
        DamagedFile: the policy cannot be read.
    """
    program = path.with_suffix(".py")
    _check_files(path, program)
    refuse_without_policy(run)
    saved = load_saved_policy(run.folder / POLICY, seed)
    about = {
        "env": saved.spec.id,
        "algorithm": saved.algorithm.name,
        "run": run.ulid,
        "seed": seed_of(run, seed),
        "env_steps": saved.env_steps,
    }
    recorded = record(saved.algorithm, saved.state, saved.spec)
    write_whole(path, packed(recorded, saved.spec, about))
    write_whole(program, source().encode())
    return Exported(path, program, seed_of(run, seed))


def packed(program: Program, spec: EnvSpec, about: Mapping[str, Any]) -> bytes:
    """Return the `.npz` file of a policy: arrays by name, and everything else as JSON text."""
    own = spec.own_spaces
    facts = {
        "format": numpy_policy.FORMAT,
        **about,
        "spaces": {
            "observation": spaces.to_json_without_bounds(spec.observation),
            "own_observation": spaces.to_json_without_bounds(own.observation),
            "action": spaces.to_json(spec.action),
            "own_action": spaces.to_json(own.action),
        },
        "program": {"steps": program.steps, "action": program.action},
    }
    file = io.BytesIO()
    text = np.array(json.dumps(to_json(facts)))
    np.savez(file, allow_pickle=False, about=text, **program.arrays)
    return file.getvalue()


def source() -> str:
    """Return the program that acts, from two modules of backflip that need NumPy only."""
    modules = (spaces, numpy_policy)
    texts = [_without_own_imports(Path(str(module.__file__)).read_text()) for module in modules]
    return "\n\n".join([FIRST_LINE, "# ruff: noqa", *texts])


def _check_files(path: Path, program: Path) -> None:
    if path.suffix != SUFFIX:
        raise UsageError(f"the file must end in {SUFFIX}, got `{path}`; try {path.stem}{SUFFIX}")
    if exists(program) and not program.read_bytes().startswith(FIRST_LINE.encode()):
        raise UsageError(
            f"`{program}` exists and is another program, which would be overwritten; choose "
            f"another name than `{path.name}`"
        )


def _without_own_imports(text: str) -> str:
    """Return the source of a module without its imports of backflip."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("backflip"):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(lines)
