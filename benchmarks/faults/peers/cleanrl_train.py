"""Run a file of CleanRL by the name of a run, a seed after the other, into a folder.

    python benchmarks/faults/peers/cleanrl_train.py NAME FOLDER --cleanrl CHECKOUT

A healthy run executes the file of the checkout as it is. A fault that is an edit executes a copy
of the same name. Each seed gets a folder, in which the file writes its event files. Runs in
`.cache/peers/cleanrl/bin/python`. `collect_peers.py` calls this.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cleanrl_faults import SEEDS, Fault, Training, find


def program(fault: Fault | None, of: Training, checkout: Path, folder: Path) -> Path:
    """Return the file to execute: that of the checkout, or an edited copy in the folder.

    Raises:
        SystemExit: the text to edit does not occur once.
    """
    original = checkout / "cleanrl" / of.file
    if fault is None or not fault.edit[0]:
        return original
    text, (old, new) = original.read_text(encoding="utf-8"), fault.edit
    if text.count(old) != 1:
        sys.exit(f"`{old}` occurs {text.count(old)} times in {of.file}: another version of CleanRL")
    copy = folder / of.file
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return copy


def main() -> None:
    """Run all seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cleanrl", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    arguments = parser.parse_args()
    fault, of = find(arguments.name)
    env = {**os.environ, "PYTHONPATH": str(arguments.cleanrl), "OMP_NUM_THREADS": "1"}
    for seed in range(arguments.seeds):
        folder = arguments.folder / f"seed_{seed}"
        folder.mkdir(parents=True)
        file = program(fault, of, arguments.cleanrl, folder)
        options = (*of.options, *(fault.options if fault else ()), "--seed", str(seed), "--no-cuda")
        command = [sys.executable, str(file), *options]
        subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
