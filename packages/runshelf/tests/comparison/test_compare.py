"""`compare` end to end: through real run folders, the index and the command line."""

import csv
import io
import itertools
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.runshelf.tests.comparison.homes import (
    METRIC,
    change_manifest,
    make_group,
    make_run,
)
from packages.runshelf.tests.interop.wandb_writer import wandb_file

from runshelf.cli.main import main
from runshelf.comparison.across import _thresholds
from runshelf.comparison.document import csv_text
from runshelf.registrations.kept import find


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Shell:
    """Runs `compare` on a home."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.capsys = home, capsys

    def __call__(self, *words: str, status: int = 0) -> str:
        """Run it; return what it printed on stdout, or on stderr if it is to fail."""
        found = main(["compare", *words, "--home", str(self.home)])
        out, err = self.capsys.readouterr()
        assert found == status, err
        return out if status == 0 else err

    def json(self, *words: str) -> dict[str, Any]:
        """Run it with `--json`; return the document."""
        return json.loads(self(*words, "--json"))


@pytest.fixture
def compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)


def two(home: Path) -> None:
    make_group(home, "a group", [10, 11, 12, 13, 14, 15])
    make_group(home, "b group", [1, 2, 3, 4, 5, 6], config={"learning_rate": 0.01})


@pytest.mark.medium
def test_three_numbers_by_hand(tmp_path: Path, compare: Shell) -> None:
    two(tmp_path)
    found = compare.json("a group", "b group", "--threshold", "12")
    (env,) = found["environments"]
    one, other = env["groups"]
    assert [seed["value"] for seed in one["seeds"]] == [10, 11, 12, 13, 14, 15]
    assert (one["n"], one["mean"]["value"], one["median"], one["worst"]) == (6, 12.5, 12.5, 10)
    assert (one["reaching"], other["reaching"]) == (4, 0)
    # s² = 3.5 in both; t(.975, 10) = 2.228139; half = t √(3.5/6 + 3.5/6).
    (pair,) = env["pairs"]
    half = 2.228139 * math.sqrt(7 / 6)
    assert pair["difference"]["value"] == 9
    assert pair["difference"]["low"] == pytest.approx(9 - half, abs=1e-4)
    # Of 924 ways to divide twelve values, two are as extreme.
    assert pair["p"] == pytest.approx(2 / 924)
    assert pair["probability_better"]["value"] == 1.0
    assert "a group is better than b group" in pair["conclusion"]
    # The curve rises from 0 to the value within 17 of 20 records, then it is flat.
    heights = [min(1.0, n / 17) for n in range(1, 21)]
    area = sum((a + b) / 2 for a, b in itertools.pairwise(heights)) / 19
    assert one["area"]["value"] == pytest.approx(12.5 * area)
    assert found["differences"][0]["names"] == [
        "learning_rate (0.001, 0.01)", "algorithm (a, b)"
    ]  # fmt: skip


@pytest.mark.medium
def test_settings_that_differ_stand_first_with_a_column_for_each_group(
    tmp_path: Path, compare: Shell
) -> None:
    for name, config in (
        ("a group", {"learning_rate": 0.001, "hidden": [64, 64], "clip": 0.2}),
        ("name", {"learning_rate": 0.01, "hidden": [64, 64], "clip": 0.2}),
        ("c group", {"learning_rate": 0.001, "hidden": [8], "extra": "x" * 200}),
    ):
        make_group(tmp_path, name, [1.0, 2.0], config=config)
    names, files = ("a group", "name", "c group"), [tmp_path / "c.md", tmp_path / "c.html"]
    options = [*names, "--markdown", str(files[0]), "--html", str(files[1])]
    text = compare(*options)
    lines = [line.split() for line in text.splitlines()]
    at = lines.index(["kind", "name", "a", "group", "name", "(2)", "c", "group"])
    assert at < next(n for n, line in enumerate(lines) if line[:1] == ["CartPole-v1"])
    assert ["settings", "learning_rate", "0.001", "0.01", "0.001"] in lines
    assert ["settings", "hidden", "64,64", "64,64", "8"] in lines
    assert ["settings", "clip", "0.2", "0.2", "none"] in lines
    markdown, html = (path.read_text() for path in files)
    assert "| kind | name | a group | name (2) | c group |" in markdown
    assert r"| settings | learning\_rate | 0.001 | 0.01 | 0.001 |" in markdown
    assert "<td>learning_rate</td><td>0.001</td><td>0.01</td><td>0.001</td>" in html
    found = compare.json(*names)["differences"][0]
    assert {"name": "clip", "values": ["0.2", "0.2", "none"]} in found["rows"]


@pytest.mark.medium
def test_of_many_groups_each_has_a_line_of_settings(tmp_path: Path, compare: Shell) -> None:
    names = [f"g{n}" for n in range(9)]
    for n, name in enumerate(names):
        config = {f"setting_{k}": k + n * (k < 8) for k in range(10)}
        make_group(tmp_path, name, [1.0, 2.0], config=config)
    lines = compare(*names).splitlines()
    heads = next(line.split() for line in lines if line.split()[:2] == ["group", "setting_0"])
    assert heads == ["group", *(f"setting_{k}" for k in range(6))]
    assert ["g8", *(str(k + 8) for k in range(6))] in [line.split() for line in lines]
    assert any("more differences not shown" in line for line in lines)


@pytest.mark.medium
def test_a_group_a_filter_a_run_and_a_home_are_sides(tmp_path: Path, compare: Shell) -> None:
    two(tmp_path)
    folder = make_run(tmp_path, "c group", 99.0, 3)
    make_group(tmp_path / "other", "d group", [7.0, 8.0])
    found = compare.json("a group", "algorithm=b", str(folder), str(tmp_path / "other"))
    (env,) = found["environments"]
    assert [side["n"] for side in env["groups"]] == [6, 6, 1, 2]
    assert [side["mean"]["value"] for side in env["groups"]] == [12.5, 3.5, 99.0, 7.5]
    assert len(env["pairs"]) == 6


@pytest.mark.medium
def test_logs_of_other_libraries_are_sides(tmp_path: Path, compare: Shell) -> None:
    for seed in range(3):
        rows = [{"_step": n, "global_step": 10 * n, "return": seed + n} for n in range(20)]
        wandb_file(tmp_path / f"wandb/run-{seed}/run-{seed}.wandb", rows, f"r{seed}", seed=seed)
        text = "\n".join(f"{10 * n},{100 + seed + n}" for n in range(20))
        (tmp_path / "tables").mkdir(exist_ok=True)
        (tmp_path / f"tables/{seed}.csv").write_text(f"global_step,return\n{text}\n")
    found = compare.json(str(tmp_path / "wandb"), str(tmp_path / "tables"), "--metric", "return")
    (env,) = found["environments"]
    # The last tenth of 0 ... 190 holds the rows 18 (171 is its start) and 19.
    assert [side["mean"]["value"] for side in env["groups"]] == [19.5, 119.5]
    assert [seed["seed"] for seed in env["groups"][0]["seeds"]] == [0, 1, 2]
    assert not (tmp_path / "runs").exists()  # nothing was imported into the home


def test_a_table_with_a_column_of_seeds(tmp_path: Path, compare: Shell) -> None:
    path = tmp_path / "all.csv"
    lines = [f"{seed},{n},{seed}.5" for seed in range(4) for n in range(5)]
    path.write_text("\n".join(["seed,env_steps,score", *lines, ""]))
    (env,) = compare.json(str(path))["environments"]
    assert [seed["value"] for seed in env["groups"][0]["seeds"]] == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.medium
def test_logs_that_cannot_be_read(tmp_path: Path, compare: Shell) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    assert "expected event files of TensorBoard" in compare(str(folder), status=2)
    os.mkfifo(folder / "pipe.csv")
    (folder / "link.csv").symlink_to("/etc/passwd")
    assert "expected event files of TensorBoard" in compare(str(folder), status=2)
    (folder / "a.wandb").write_bytes(b"no file of W&B")
    (folder / "b.csv").write_text("env_steps,score\n")
    assert "does not begin as a file of W&B does" in compare(str(folder), status=1)
    (folder / "c.csv").write_text("env_steps,score\n1,2\n3,broken\n4,5,6,7\n5,nan\n6,8\n")
    (env,) = compare.json(str(folder), "--window", "1")["environments"]
    assert [seed["value"] for seed in env["groups"][0]["seeds"]] == [8.0]


@pytest.mark.medium
def test_episodes_never_pass_for_runs(tmp_path: Path, compare: Shell) -> None:
    make_group(tmp_path, "a group", [10.0], points=500)
    make_group(tmp_path, "b group", [1.0], points=500)
    (env,) = compare.json("a group", "b group")["environments"]
    assert [side["n"] for side in env["groups"]] == [1, 1]
    assert env["pairs"][0]["p"] is None or env["pairs"][0]["p"] == 1.0
    assert "nothing can be concluded" in env["pairs"][0]["conclusion"]
    assert env["groups"][0]["mean"]["low"] is None


@pytest.mark.medium
def test_few_seeds_can_show_nothing(tmp_path: Path, compare: Shell) -> None:
    make_group(tmp_path, "a group", [10.0, 11.0, 12.0])
    make_group(tmp_path, "b group", [1.0, 2.0, 3.0])
    (pair,) = compare.json("a group", "b group")["environments"][0]["pairs"]
    assert pair["p"] == pytest.approx(0.1)
    assert "with 3 against 3 seeds no permutation test can show" in pair["conclusion"]
    assert "Run at least 4 seeds of each" in pair["conclusion"]


@pytest.mark.medium
def test_failures_count_and_are_said(tmp_path: Path, compare: Shell) -> None:
    two(tmp_path)
    make_run(tmp_path, "a group", 14.0, 7, status="failed")
    make_run(tmp_path, "a group", math.nan, 8, metric="score")
    make_run(tmp_path, "b group", math.inf, 9)
    found = compare.json("a group", "b group", "--metric", METRIC, "--threshold", "1")
    one, other = found["environments"][0]["groups"]
    assert (one["n"], one["failures"], one["reaching"]) == (8, 2, 6)
    assert (other["n"], other["failures"], other["reaching"]) == (7, 1, 6)
    # They count as the worst value of the environment.
    assert found["environments"][0]["failures_count_as"] == 1
    assert one["mean"]["value"] == pytest.approx((75 + 2) / 8)
    said = " ".join(found["notes"])
    assert "a group, CartPole-v1: 2 of 8 seeds count as failures: seed 7 (failed" in said
    assert "seed 8 (no value of episode_return_mean)" in said
    assert "seed 9 (infinite in the final window)" in said


@pytest.mark.medium
def test_a_nan_at_the_end_is_a_failure(tmp_path: Path, compare: Shell) -> None:
    make_group(tmp_path, "a group", [1.0, 2.0, math.nan], metric="score")
    make_group(tmp_path, "b group", [3.0, 4.0, 5.0], metric="score")
    found = compare.json("a group", "b group")
    assert found["environments"][0]["groups"][0]["seeds"][2]["failure"] == "NaN in the final window"


@pytest.mark.medium
def test_tuning_seeds_are_refused_unless_allowed(tmp_path: Path, compare: Shell) -> None:
    two(tmp_path)
    sweep = {"sweep": {"name": "s", "purpose": "tuning", "tried": 30}}
    make_group(tmp_path, "c group", [1.0, 2.0], manifest=sweep)
    make_run(tmp_path, "b group", 9.0, 20, manifest={"tuning": True})
    error = compare("a group", "b group", status=2)
    assert "`b group` mixes 1 tuning seeds with 6 others" in error
    assert "all 2 seeds of `c group` are tuning seeds" in compare("c group", status=2)
    found = compare.json("a group", "c group", "--allow-tuning-seeds")
    assert any("its settings were chosen on them" in note for note in found["notes"])
    assert any("configurations tried: a group unknown, c group 30" in n for n in found["notes"])


@pytest.mark.medium
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("a group", "b group", "--metric", "episode_retrun_mean"),
            "did you mean `episode_return_m",
        ),
        (("a group", "other env"), "no environment is common to two groups"),
        (("a group", "a group"), "the same 6 runs: a group cannot be compared with itself"),
        (("a group", "seed=3"), "is in both `a group` and `seed=3`"),
        (("a group", "algorithm=nothing"), "no run matches the filter `algorithm=nothing`"),
        (("a group", "a gruop"), "did you mean `a group`"),
        (("a group", ""), "cannot be empty"),
        ((), "name the groups"),
        (("a group", "--low", "CartPole=1"), "did you mean `CartPole-v1`"),
        (("a group", "--low", "CartPole-v1=600"), "low must be below high"),
        (("a group", "--low", "CartPole-v1=x"), "--low must be ENV=NUMBER"),
        (("a group", "--threshold", "x"), "must be X or ENV=X"),
        (("a group", "--threshold", "nan"), "must be X or ENV=X"),
        (("a group", "--threshold", "CartPole-v1=1e999"), "must be X or ENV=X"),
        (("a group", "--window", "0"), "from 1 to 100"),
        (("a group", "--alpha", "1"), "above 0 and below 0.5"),
        (("a group", "--html", "x.csv"), "ends in .html"),
        (("a group", "--csv", "/no/such/x.csv"), "no folder `/no/such`"),
        (("a group", "--references", "/no/such/x"), "cannot read or write"),
        (("a group", "--registered", "x"), "there is no registration `x`"),
        (("a group", "--start"), "--start needs --sequential"),
        (("a group", "b group", "--sequential"), "needs a registration"),
    ],
)
def test_wrong_usage_is_one_line(
    tmp_path: Path, compare: Shell, words: tuple[str, ...], message: str
) -> None:
    two(tmp_path)
    make_group(tmp_path, "other env", [1.0, 2.0], env="Pendulum-v1", first=40)
    status = 1 if "/no/such/x" in words else 2
    error = compare(*words, status=status)
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.medium
def test_what_a_reader_must_know_is_said(tmp_path: Path, compare: Shell) -> None:
    make_group(tmp_path, "a group", [5.0, 5.0, 5.0])
    make_group(tmp_path, "b group", [1.0, 2.0], points=40)
    make_run(tmp_path, "b group", 3.0, 2, points=20)
    make_run(tmp_path, "b group", 2.5, 2, points=20)  # repeats seed 2
    make_run(tmp_path, "b group", 4.0, 9, status="stopped", config={"clip_range": 0.3})
    found = compare.json("a group", "b group")
    assert [side["n"] for side in found["environments"][0]["groups"]] == [3, 4]
    said = "\n".join(found["notes"])
    for text in (
        "a group, CartPole-v1: all 3 seeds have the same value",
        "b group: 1 repeated seed not counted",
        "b group, CartPole-v1: curves of unequal length (2 000 to 4 000)",
        "seed 9: stopped before the end",
        "unequal budgets, env steps of the median seed: a group 2 000, b group 4 000",
        "the same seed numbers occur on several sides",
        "its seeds are of 2 different settings: settings: clip_range (none, 0.3)",
    ):
        assert text in said


@pytest.mark.medium
def test_a_loss_is_better_if_it_is_lower(tmp_path: Path, compare: Shell) -> None:
    make_group(tmp_path, "a group", [1.0, 2.0, 3.0, 4.0], metric="value_loss")
    make_group(tmp_path, "b group", [11.0, 12.0, 13.0, 14.0], metric="value_loss")
    found = compare.json("a group", "b group", "--threshold", "3")
    (env,) = found["environments"]
    assert (found["better"], env["groups"][0]["worst"], env["groups"][0]["reaching"]) == (
        *("lower", 4.0), 3,
    )  # fmt: skip
    assert env["pairs"][0]["probability_better"]["value"] == 1.0
    assert (
        "a group is better than b group: the mean is lower by 10" in env["pairs"][0]["conclusion"]
    )


@pytest.mark.medium
def test_across_environments(tmp_path: Path, compare: Shell) -> None:
    rng = np.random.default_rng(0)
    for place, env in enumerate(("CartPole-v1", "Acrobot-v1", "Own-v0")):
        for name, level in (("a group", 0.8), ("b group", 0.3)):
            scores = level + 0.05 * rng.normal(size=5)
            low, high = ((22.1, 500.0), (-497.4, -100.0), (0.0, 10.0))[place]
            values = (low + (high - low) * scores).tolist()
            make_group(tmp_path, name, values, env=env, config={"learning_rate": level})
    found = compare.json("a group", "b group", "--low", "Own-v0=0", "--high", "Own-v0=10")
    across = found["across"]
    assert across["environments"] == ["Acrobot-v1", "CartPole-v1", "Own-v0"]
    assert across["groups"][0]["iqm"]["value"] == pytest.approx(0.8, abs=0.05)
    assert across["improvement"][0]["value"] == 1.0
    profile = across["groups"][1]["profile"]["share"]
    assert (profile[0], profile[-1]) == (pytest.approx(1.0), 0.0)
    assert sorted(profile, reverse=True) == profile
    sources = [env["reference"]["source"] for env in found["environments"]]
    assert sources[2] == "given"
    assert "Gymnasium" in sources[0]
    without = compare.json("a group", "b group")["across"]
    assert any("Own-v0" in note for note in without["notes"])
    pairs = [pair for env in found["environments"] for pair in env["pairs"]]
    assert [pair["p_corrected"] for pair in pairs] == pytest.approx([3 * pairs[0]["p"]] * 3)


def test_across_environments_with_few_seeds(tmp_path: Path, compare: Shell) -> None:
    for env in ("CartPole-v1", "Acrobot-v1"):
        make_group(tmp_path, "a group", [100.0], env=env)
        make_group(tmp_path, "b group", [90.0, 95.0], env=env, config={"learning_rate": 0.1})
    found = compare.json("a group", "b group")["across"]
    assert found["groups"][0]["iqm"]["low"] is None
    assert found["notes"] == [
        "groups with 1 seed in an environment have no intervals",
        "with 2 seeds in an environment, these intervals are too narrow",
    ]


@pytest.mark.medium
def test_lower_is_better_is_the_mirror_of_higher_is_better(tmp_path: Path, compare: Shell) -> None:
    rng = np.random.default_rng(1)
    ends = {"Own-v0": (20.0, 80.0), "Other-v0": (-3.0, 5.0)}
    values = {
        (env, name): rng.normal(low + level * (high - low), (high - low) / 4, 5).tolist()
        for env, (low, high) in ends.items()
        for name, level in (("a group", 0.7), ("b group", 0.5))
    }
    found: dict[str, Any] = {}
    for metric, sign in (("score", 1), ("cost", -1)):
        home = tmp_path / metric
        for (env, name), of in values.items():
            config = {"learning_rate": len(name + env)}
            make_group(home, name, [sign * x for x in of], env=env, metric=metric, config=config)
            make_run(home, name, 0.0, 9, env=env, metric=metric, status="failed", config=config)
        words = [
            word
            for env, (low, high) in ends.items()
            for word in ("--low", f"{env}={sign * low}", "--high", f"{env}={sign * high}")
        ]
        words += ["--threshold", f"Own-v0={sign * 50.0}"]
        found[metric] = Shell(home, compare.capsys).json("a group", "b group", *words)
    higher, lower = found["score"], found["cost"]
    assert (higher["better"], lower["better"]) == ("higher", "lower")
    assert lower["across"] == higher["across"]
    # A random policy has the score 0 and a good one 1, with either sign.
    scores = [
        (value - ends[env][0]) / (ends[env][1] - ends[env][0])
        for env in ends
        for value in [*values[env, "a group"], min(values[env, "a group"] + values[env, "b group"])]
    ]
    middle = sorted(scores)[len(scores) // 4 : -(len(scores) // 4)]
    assert lower["across"]["groups"][0]["iqm"]["value"] == pytest.approx(np.mean(middle))
    for one, other in zip(higher["environments"], lower["environments"], strict=True):
        for a, b in zip(one["groups"], other["groups"], strict=True):
            assert (a["worst"], a["median"]) == (-b["worst"], pytest.approx(-b["median"]))
            assert a["reaching"] == b["reaching"]
        for a, b in zip(one["pairs"], other["pairs"], strict=True):
            assert (a["p"], a["probability_better"]) == (b["p"], b["probability_better"])


@pytest.mark.medium
def test_references_of_lower_is_better_have_the_higher_number_at_0(
    tmp_path: Path, compare: Shell
) -> None:
    make_group(tmp_path, "a group", [1.0, 2.0], metric="cost")
    make_group(tmp_path, "b group", [1.0, 3.0], metric="cost")
    error = compare(
        "a group", "b group", "--low", "CartPole-v1=1", "--high", "CartPole-v1=2", status=2
    )
    assert "low must be above high in `CartPole-v1`, since lower values are better" in error
    # The known references are of returns, of which higher ones are better.
    made = compare.json("a group", "b group")
    assert made["environments"][0]["reference"] is None


@pytest.mark.parametrize(
    ("least", "most", "first", "last"),
    [(0.2, 0.9, 0.0, 1.0), (-2.5, 1.3, -3.0, 1.5), (-500.0, 1.0, -25.0, 1.0), (-1e9, 1e9, -25, 25)],
)
def test_a_profile_has_the_scores_from_0_to_1_whatever_the_range(
    least: float, most: float, first: float, last: float
) -> None:
    scores = _thresholds(least, most)
    assert (scores[0], scores[-1]) == (first, last)
    assert {0.0, 0.5, 1.0} <= set(scores)


def test_a_list_of_numbers_in_csv_has_no_quote_and_a_formula_has() -> None:
    numbers = ["-150.5 -151.5", "-1e+05 nan -inf", "-3"]
    formulas = ["-1+cmd", "=1 2", "-1 =A1", "-1\n-2", "-", "@x", "- 1"]
    text = csv_text(("cell",), [[one] for one in (*numbers, *formulas)])
    cells = [row["cell"] for row in csv.DictReader(io.StringIO(text))]
    assert cells == [*numbers, *(f"'{one}" for one in formulas)]


@pytest.mark.medium
def test_every_format_has_the_same_numbers(tmp_path: Path, compare: Shell) -> None:
    two(tmp_path)
    make_run(tmp_path, "b group", 4.0, 11, status="failed", config={"learning_rate": 0.01})
    names = {kind: tmp_path / f"c.{end}" for kind, end in
             (("csv", "csv"), ("latex", "tex"), ("markdown", "md"), ("html", "html"))}  # fmt: skip
    options = [word for kind, path in names.items() for word in (f"--{kind}", str(path))]
    text = compare("a group", "b group", *options)
    rows = list(csv.DictReader(io.StringIO(names["csv"].read_text())))
    assert [float(row["mean"]) for row in rows] == [12.5, pytest.approx(22 / 7)]
    for shown in (text, *(names[kind].read_text() for kind in ("latex", "markdown", "html"))):
        assert "12.5 (10.54 to 14.46)" in shown
        assert "is better than" in shown
    latex = names["latex"].read_text()
    assert r"learning\_rate" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") > 3
    html = names["html"].read_text()
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")
    assert html.count("<circle") == 12
    assert 'class="failed"' in html


@pytest.mark.medium
@pytest.mark.parametrize(("points", "drawn"), [(1, False), (20, True)])
def test_curves_and_areas_are_shown_where_a_seed_has_several_values(
    tmp_path: Path, compare: Shell, points: int, drawn: bool
) -> None:
    for group in ("a group", "b group"):
        make_group(tmp_path, group, [10, 11], points=points, config={"name": group})
    page = tmp_path / "c.html"
    text = compare("a group", "b group", "--html", str(page))
    assert ("area under the curve" in text) is drawn
    assert (f"{METRIC} along" in page.read_text()) is drawn


@pytest.mark.medium
def test_hostile_names_are_escaped_everywhere(tmp_path: Path, compare: Shell) -> None:
    evil = "<script>alert(1)</script> $\\x|`*\x1b[31m"
    make_group(tmp_path, evil, [1.0, 2.0, 3.0, 4.0])
    make_group(tmp_path, "=cmd()", [2.0, 3.0, 4.0, 5.0])
    files = {kind: tmp_path / f"c.{kind[:4]}" for kind in ("html",)}
    options = ["--csv", str(tmp_path / "c.csv"), "--latex", str(tmp_path / "c.tex")]
    options += ["--markdown", str(tmp_path / "c.md"), "--html", str(files["html"])]
    text = compare("algorithm~script", "algorithm~cmd", *options)
    shown = text + "".join(path.read_text() for path in tmp_path.glob("c.*"))
    assert "<script>alert" not in files["html"].read_text()
    assert "\x1b" not in shown
    assert "\n=cmd" not in (tmp_path / "c.csv").read_text()


def register(compare: Shell, *words: str) -> None:
    plan = ("--question", "q", "--hypothesis", "A=higher", "--metric", METRIC, *words)
    assert main(["register", "plan", *plan, "--home", str(compare.home)]) == 0
    compare.capsys.readouterr()


def registered(home: Path) -> dict[str, Any]:
    return find(home, "plan").carried()


@pytest.mark.medium
def test_the_registered_analysis_is_first(tmp_path: Path, compare: Shell) -> None:
    register(compare, "--n", "4")
    carried = registered(tmp_path)
    make_group(tmp_path, "a group", [9.0, 8, 7, 6], registered=carried)
    make_group(tmp_path, "b group", [1.0, 2, 3, 4], registered=carried)
    found = compare.json("a group", "b group")
    assert (found["registered"]["deviations"], found["metric"]) == ([], METRIC)
    assert "exploratory" not in found
    other = compare.json("a group", "b group", "--window", "50")
    assert other["window_percent"] == 10
    assert other["exploratory"][0]["window_percent"] == 50
    text = compare("a group", "b group", "--test", "welch")
    first = text.index("CartPole-v1 (registered analysis)")
    assert first < text.index("CartPole-v1 (exploratory, not registered)")
    assert compare.json("a group", "b group", "--registered", "none")["registered"] is None


@pytest.mark.medium
def test_a_registered_failure_value_is_for_the_registered_metric_only(
    tmp_path: Path, compare: Shell
) -> None:
    register(compare, "--n", "2", "--failure-value", "-1000", "--threshold", "5")
    carried = registered(tmp_path)
    for group in ("a group", "b group"):
        make_group(tmp_path, group, [9.0, 8.0], registered=carried)
        make_run(tmp_path, group, 7.0, 2, status="failed", registered=carried)
    window = compare("a group", "b group", "--window", "50")
    assert window.count("a failure counts as −1000") == 2
    assert window.count("tests: as registered") == 2
    other = ("a group", "b group", "--metric", "updates")
    text = compare(*other)
    assert "tests: as registered" in text
    (env,) = compare.json(*other)["exploratory"][0]["environments"]
    assert env["threshold"] is None
    assert env["failures_count_as"] > 0
    assert "any seed here" in text


@pytest.mark.medium
def test_deviations_are_said(tmp_path: Path, compare: Shell) -> None:
    folder = make_run(tmp_path, "a group", 9.0, 0)
    register(compare, "--n", "4")
    carried = registered(tmp_path)
    make_group(tmp_path, "a group", [8.0, 7.0], first=1, registered=carried)
    make_group(tmp_path, "b group", [1.0, 2, 3, 4], registered=carried | {"sha256": "f" * 64})
    change_manifest(folder, created="2020-01-01T00:00:00+00:00")
    found = "\n".join(compare.json("a group", "b group")["registered"]["deviations"])
    for text in (
        "1 of 7 seeds were not started under it",
        "a group, CartPole-v1: 3 seeds, registered were 4",
        "(ffffffffffff) is not that of the registration",
        "1 of 7 seeds were run before it was registered",
    ):
        assert text in found
    path = tmp_path / "runs/.runshelf/registrations/plan/1.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b'"n":4', b'"n":3'))
    changed = "\n".join(compare.json("a group", "b group")["registered"]["deviations"])
    assert "cannot be trusted: its file was changed" in changed


@pytest.mark.medium
def test_a_fixed_test_of_a_sequential_registration_is_exploratory(
    tmp_path: Path, compare: Shell
) -> None:
    register(compare, "--n", "10", "--looks", "2")
    for name, values in (("a group", range(5)), ("b group", range(10, 15))):
        make_group(tmp_path, name, list(values), registered=registered(tmp_path))
    text = compare("a group", "b group")
    assert "the registered test is sequential" in text
    assert "CartPole-v1 (exploratory, not registered)" in text
    found = compare.json("a group", "b group", "--sequential")
    assert (found["verdict"], found["pairs"][0]["decision"]) == ("stop", "worse")


@pytest.mark.medium
def test_imports_of_one_side_do_not_change_the_home(tmp_path: Path, compare: Shell) -> None:
    two(tmp_path)
    before = sorted(path.name for path in (tmp_path / "runs").iterdir())
    logs = tmp_path / "logs.csv"
    logs.write_text(f"env_steps,{METRIC}\n" + "".join(f"{n},7\n" for n in range(9)))
    found = compare.json("a group", str(logs))
    assert found["environments"][0]["environment"] == "CartPole-v1"
    assert any("taken for CartPole-v1" in note for note in found["notes"])
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == before
