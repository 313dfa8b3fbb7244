"""Teach each task that has a bar from comparisons, in whole processes, and print the scores.

    python benchmarks/teach.py [NAME ...] [--first FIRST]

Every row is one `backflip teach ... --json` process with seeds from `--first` on (default 1000: not
used for tuning). The last column is the physical limit of the score.
"""

import argparse

from side_by_side import ours

ROWS: dict[str, tuple[list[str], str, str]] = {
    "dot": (["dot", "--labels", "100", "--seeds", "10"], "mean >= .95, each >= .90", "1"),
    "dot-corner": (
        ["dot", "--labels", "100", "--seeds", "10", "--env-arg", "goal=40,60"],
        "mean >= .95, each >= .90",
        "1",
    ),
    "dot-right": (
        ["dot", "--labels", "100", "--seeds", "10", "--env-arg", "goal=120,150"],
        "mean >= .95, each >= .90",
        "1",
    ),
    "pendulum": (
        ["Pendulum-v1", "--labels", "50", "--seeds", "10"],
        "mean >= -165, each >= -220, <= 60 s",
        "-138",
    ),
    "cartpole": (["CartPole-v1", "--labels", "100", "--seeds", "10"], "each >= 475", "500"),
    "pendulum-host": (
        ["gymnasium:Pendulum-v1", "--labels", "50", "--seeds", "5"],
        "as the compiled driver",
        "-138",
    ),
    "inverted-pendulum": (
        ["InvertedPendulum-v5", "--labels", "100", "--seeds", "5"],
        ">= 900 on 4 of 5",
        "1000",
    ),
}


def main() -> None:
    """Run the chosen rows in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows; default: all")
    parser.add_argument("--first", default="1000", help="the first seed")
    options = parser.parse_args()
    print(
        "| row | bar | mean | worst | every seed | seconds | limit |\n|---|---|---|---|---|---|---|"
    )
    for name in options.names or ROWS:
        arguments, bar, limit = ROWS[name]
        done = ours("teach", *arguments, "--seed", options.first, "--json")
        scores = [round(x, 3) for x in done.output.get("score") or done.output["returns"]]
        mean = sum(scores) / len(scores)
        print(
            f"| {name} | {bar} | {mean:.3f} | {min(scores)} | {sorted(scores)} "
            f"| {done.seconds:.0f} | {limit} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
