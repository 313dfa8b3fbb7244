"""Which blocks a sweep has, how configurations are ranked, and what halving stops."""

import math
from dataclasses import replace

import pytest

from runshelf.errors import UsageError
from runshelf.sweeps.blocks import ReportPlan, report_blocks, rounds, survivors, tuning_blocks
from runshelf.sweeps.definition import Definition, check_definition
from runshelf.sweeps.making import make_sweep, open_failed
from runshelf.sweeps.ranking import identical_runs, ranked
from runshelf.sweeps.results import BlockResult, done_name, to_data
from runshelf.sweeps.space import Choice
from runshelf.sweeps.state import read_report, state_of_sweep, write_report
from runshelf.sweeps.template import with_values

DEFINITION = Definition(
    command=("train", "--lr={lr}", "--first={first_seed}", "-n", "{seeds}"),
    cwd="/",
    home="/nowhere",
    space={"lr": Choice((1, 2, 3, 4))},
    search="grid",
    configurations=4,
    seeds=5,
    block_seeds=2,
)


def result(block, configuration, scores, **more):
    first = min(scores)
    return BlockResult(
        block=block, purpose="tuning", configuration=configuration, values={"lr": configuration},
        first_seed=first, seeds=len(scores), state="finished", metric="score",
        scores={seed: score for seed, score in scores.items() if score is not None}, **more,
    )  # fmt: skip


def test_every_seed_is_in_one_block_and_first_seeds_come_first():
    blocks = list(tuning_blocks(DEFINITION, 0, [0, 3]))
    assert [(b.configuration, b.first_seed - 1_000_000, b.seeds) for b in blocks] == [
        (0, 0, 2), (3, 0, 2), (0, 2, 2), (3, 2, 2), (0, 4, 1), (3, 4, 1),
    ]  # fmt: skip
    assert len({block.name for block in blocks}) == len(blocks)


def test_seeds_of_tuning_and_report_are_never_the_same():
    tuning = {b.first_seed for b in tuning_blocks(DEFINITION, 0, range(4))}
    report = list(report_blocks(DEFINITION, ReportPlan((1,), 7)))
    assert sum(block.seeds for block in report) == 7
    assert not tuning & {block.first_seed for block in report}
    with pytest.raises(UsageError, match="used for both"):
        check_definition(replace(DEFINITION, report_seed=1_000_003))


def test_a_template_is_filled_word_by_word():
    words = ["a b", "{lr}", "--x={lr}", "{{lr}}", '{"k": 1}', "{first_seed}:{seeds}"]
    got = with_values(words, {"lr": "1; rm -rf /"}, 7, 3)
    assert got == ["a b", "1; rm -rf /", "--x=1; rm -rf /", "{lr}", '{"k": 1}', "7:3"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((), "needs a command"),
        (("x", "{lr}"), r"no `\{seed\}`"),
        (("x", "{seed}"), r"no `\{lr\}`"),
        (("x", "{lr}", "{seed}", "{lt}"), "did you mean `lr`"),
        (("x", "{lr}", "{seed}", "{seeds}"), "one seed"),
        (("backflip", "train", "{lr}", "{first_seed}", "{seeds}", "--home"), "--home"),
        (("x", "{lr}", "{seed}"), "--block-seeds"),
    ],
)
def test_bad_templates_are_refused(command, said):
    with pytest.raises(UsageError, match=said):
        check_definition(replace(DEFINITION, command=command))


def test_rounds_of_halving_by_hand():
    nine = replace(DEFINITION, configurations=9, seeds=9, halving=3)
    assert rounds(nine) == [1, 3, 9]
    assert [survivors(nine, n) for n in range(3)] == [9, 3, 1]
    assert rounds(replace(nine, seeds=10, halving=2, configurations=16)) == [2, 3, 5, 10]
    assert rounds(replace(nine, configurations=2)) == [9]


def test_ranking_by_hand():
    blocks = [
        result("a", 0, {1: 1.0, 2: 3.0}),
        result("b", 1, {1: 9.0, 2: None}),
        result("c", 2, {1: 4.0, 2: 4.0}),
    ]
    best, second, last = ranked(DEFINITION, blocks, "tuning")
    assert (best.configuration, best.mean, best.seeds) == (2, 4.0, 2)
    assert (second.configuration, second.mean) == (0, 2.0)
    # Student: 2 ± 12.7062 · √2 / √2
    assert (second.low, second.high) == (pytest.approx(-10.7062), pytest.approx(14.7062))
    assert (last.configuration, last.failed, last.mean) == (1, 1, 9.0)
    assert math.isnan(last.scores[2])
    low = ranked(replace(DEFINITION, minimise=True), blocks, "tuning")
    assert [one.configuration for one in low] == [0, 2, 1]


@pytest.mark.parametrize(
    ("minimise", "named", "measured", "best"),
    [
        (None, None, "loss", 0),
        (None, "train/td_error", "train/td_error", 0),
        (None, None, "score", 1),
        (False, None, "loss", 1),
        (True, None, "score", 0),
    ],
)
def test_the_lowest_loss_is_the_best_unless_the_user_says_otherwise(
    minimise, named, measured, best
):
    definition = replace(DEFINITION, minimise=minimise, metric=named)
    blocks = [
        result(f"b{number}", number, {1: float(number)})._replace(metric=measured)
        for number in range(2)
    ]
    assert ranked(definition, blocks, "tuning")[0].configuration == best


def test_identical_runs_are_named():
    same = [
        result("a", 0, {1: 1.0, 2: 1.0}, digests={1: "x", 2: "x"}),
        result("b", 1, {1: 1.0, 2: 2.0}, digests={1: "x", 2: "y"}),
    ]
    of_seeds, of_values = identical_runs(same)
    assert "seeds 1, 2 of configuration 0" in of_seeds
    assert "configurations 0, 1" in of_values
    assert "`lr`" in of_values
    assert identical_runs([result("a", 0, {1: 1.0, 2: 1.0}, digests={1: "x", 2: "y"})]) == []


@pytest.fixture
def halved(tmp_path):
    return make_sweep(
        tmp_path / "sweep", tmp_path,
        replace(DEFINITION, seeds=4, block_seeds=1, halving=2, home=str(tmp_path)),
    )  # fmt: skip


def record(sweep, score):
    """Write a result for every open block; `score` has (configuration, seed)."""
    for block in state_of_sweep(sweep).open:
        one = result(
            block.name,
            block.configuration,
            {block.first_seed: score(block.configuration, block.first_seed)},
        )
        (sweep.folder / done_name(block.name)).write_bytes(to_data(one))


def test_halving_gives_more_seeds_to_the_best_half_only(halved):
    seen = []
    for _ in range(3):
        seen.append(sorted(b.configuration for b in state_of_sweep(halved).open))
        record(halved, lambda configuration, seed: float(configuration))
    # Rounds of 1, 2 and 4 seeds for 4, 2 and 1 configurations.
    assert seen == [[0, 1, 2, 3], [2, 3], [3, 3]]
    state = state_of_sweep(halved)
    assert state.open == []
    assert state.dropped == {1: (0, 1), 2: (2,)}
    assert [one.seeds for one in state.standings()] == [4, 2, 1, 1]


def test_a_stopped_configuration_never_comes_before_one_with_more_seeds(halved):
    record(halved, lambda configuration, seed: float(configuration))
    record(halved, lambda configuration, seed: -100.0)
    record(halved, lambda configuration, seed: -100.0)
    assert state_of_sweep(halved).standings()[0].seeds == 4


def test_the_same_command_joins_a_sweep_and_another_is_refused(halved, tmp_path):
    again = make_sweep(halved.folder, tmp_path, halved.definition)
    assert again.ulid == halved.ulid
    with pytest.raises(UsageError, match="other `seeds`"):
        make_sweep(halved.folder, tmp_path, replace(halved.definition, seeds=8))


def test_three_failures_and_no_success_stop_a_sweep_until_they_are_opened(halved):
    for block in state_of_sweep(halved).open[:3]:
        failed = result(block.name, block.configuration, {block.first_seed: None})
        failed = failed._replace(state="failed", error="no such option")
        (halved.folder / done_name(block.name)).write_bytes(to_data(failed))
    assert state_of_sweep(halved).hopeless == "no such option"
    assert open_failed(halved) == 3
    assert len(state_of_sweep(halved).open) == 4


def test_a_damaged_result_is_run_again(halved):
    block = state_of_sweep(halved).open[0]
    (halved.folder / done_name(block.name)).write_bytes(b'{"block": "t')
    assert block in state_of_sweep(halved).open


def test_a_report_grows_by_configurations_but_keeps_its_seeds(halved):
    write_report(halved, ReportPlan((3,), 10))
    write_report(halved, ReportPlan((3, 1), 10))
    assert read_report(halved) == ReportPlan((3, 1), 10)
    with pytest.raises(UsageError, match="has 10 seeds"):
        write_report(halved, ReportPlan((3,), 5))
