"""What `backflip lint` finds in the programs of DRLinter, arXiv:2101.00135.

    git clone https://github.com/drlinter/drlinter CHECKOUT
    python benchmarks/lint_programs.py CHECKOUT

`buggy-clones/` has one DQN with one mistake in each program, and `DQN_clean.py` without one;
`buggy_so/` has programs of people who asked why they do not learn. Mistakes that change nothing, or
that stop a program with a NameError, are named in `NO_EFFECT`.
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from backflip.doctor.lint.files import lint

FOLDERS = ("buggy-clones", "buggy_so")
CLEAN = "DQN_clean"
NO_EFFECT = {
    "DQN_Missing_close_reset_environment": "`env.close()` at the end of the program",
    "DQN_Missing_stepping_the_environment": "a second reset; each episode starts with one",
    "DQN_Missing_terminal_state": "the same reset, and a reward of -200; the end is stored",
    "DQN_Wrong_initialization_missing": "the program stops: `env` is not defined",
    "o50308750": "it only acts at random",
}


def main() -> None:
    """Print a table of the programs, and how many have a finding."""
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    checkout = parser.parse_args().checkout
    grid, found = Table("program", "found", "what the change does"), 0
    programs = [path for name in FOLDERS for path in sorted((checkout / name).glob("*.py"))]
    for path in programs:
        findings = lint([path]).findings
        said = ", ".join(f"{one.rule.id} line {one.line}" for one in findings)
        grid.add_row(path.stem, said or "nothing", NO_EFFECT.get(path.stem, ""))
        found += bool(findings) and path.stem != CLEAN
    Console(width=120).print(grid)
    faulty = [path for path in programs if path.stem not in (*NO_EFFECT, CLEAN)]
    print(f"\n{found} of {len(faulty)} programs with a mistake that matters have a finding")


if __name__ == "__main__":
    main()
