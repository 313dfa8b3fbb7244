"""Measure what teaching reaches, row by row, each beside the same learner on its true reward.

    python benchmarks/teach.py --list
    python benchmarks/teach.py [--rows 'teach-Hopper-*' ...] [--write] [--again]

`teach_rows.py` has the rows and their bars, docs/scores those of earlier bars. `measure_rows.py`
takes them in turn: one `backflip teach` process with all seeds of a row. `--write` keeps the
figures in docs/scores, with the commit, and draws docs/pictures/taught.svg; then type
`python benchmarks/figures.py`. A reference that is in docs/scores with today's command is not
measured again.
"""

import sys
from fnmatch import fnmatch

import measure_rows
from rows import ROOT, Row, read_rows
from taught_picture import taught_svg
from teach_rows import planned, reference

PICTURE = ROOT / "docs" / "pictures" / "taught.svg"


def main() -> int:
    """Measure the chosen rows, draw the picture, and return the exit status."""
    if "--list" in sys.argv[1:]:
        for name, row in planned().items():
            bar = " ".join(f"{key}={least:g}" for key, least in row.bar.items())
            print(f"{name:32} {bar:28} {row.command}")
        return 0
    options = measure_rows.parse(__doc__ or "")
    known = read_rows(options.scores)
    earlier = {name: row for name, row in known.items() if name.startswith("teach-")}
    rows = {
        name: row
        for name, row in (earlier | planned()).items()
        if any(fnmatch(name, glob) for glob in options.rows) and measure_rows.is_measured_here(row)
    }
    if not rows:
        sys.exit(f"error: no row is called {' '.join(options.rows)}; try --list")
    status = measure_rows.run(with_references(rows, known), options)
    if options.write:
        measured = read_rows(options.scores)
        PICTURE.write_text(taught_svg({n: measured[n] for n in planned() if n in measured}))
    return status


def with_references(rows: dict[str, Row], known: dict[str, Row]) -> dict[str, Row]:
    """Return the rows, each after the row that its 100 % stands for, and with earlier figures.

    A reference that is known, with the same command, is left out.
    """
    found: dict[str, Row] = {}
    for name, row in rows.items():
        full = reference(row)
        measured = known.get(row.against)
        if full is not None and (measured is None or measured.command != full.command):
            found.setdefault(row.against, full)
        found[name] = with_figures(row, known.get(name))
    return found


def with_figures(row: Row, known: Row | None) -> Row:
    """Return the figures of a row that was measured with this command; else the row."""
    return known if known is not None and known.command == row.command else row


if __name__ == "__main__":
    sys.exit(main())
