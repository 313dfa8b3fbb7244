"""What `benchmarks/faults/` keeps of other libraries: its list of faults, and its files of logs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.doctor.log_writers import sb3
from scipy import stats
from tests.modules import module_at

from backflip.doctor.causes import BY_ID
from backflip.doctor.diagnosis import diagnose
from backflip.doctor.log import Log, Signal
from backflip.doctor.reading.log_files import logs_in

store = module_at("benchmarks/faults/store.py")
rldebugger = module_at("benchmarks/faults/rldebugger.py")
effect = module_at("benchmarks/faults/effect.py")
looks = module_at("benchmarks/faults/looks.py")
LISTS = [module_at(f"benchmarks/faults/peers/{name}_faults.py") for name in ("sb3", "cleanrl")]


@pytest.mark.parametrize("faults", LISTS)
def test_faults_name_known_causes_and_trainings(faults: Any) -> None:
    broken, names = list(faults.faulty()), faults.names()
    limits = faults.calibration() if hasattr(faults, "calibration") else []
    limits += getattr(faults, "DEFAULTS", ())
    assert len(set(names)) == len(names) == len(faults.HEALTHY) + len(broken) + len(limits)
    for fault, training in broken:
        found, of = faults.find(f"{fault.name}@{training.name}")
        assert (found, of) == (fault, training)
        assert fault.causes
        assert set(fault.causes) <= BY_ID.keys()


def test_no_limit_comes_from_the_environment_or_the_seeds_that_are_reported() -> None:
    runs = [LISTS[0].find(name) for name in LISTS[0].calibration()]
    assert all(fault is None for fault, _ in runs)
    assert LISTS[0].HELD_OUT_ENV not in {training.env for _, training in runs}
    seeds = [LISTS[0].seeds_of(name) for name in ("ppo-CartPole", "calibration-ppo-CartPole")]
    seeds.append(LISTS[0].seeds_of("default-ppo-CartPole"))
    assert list(map(len, seeds)) == [5, 5, 10]
    assert len(set().union(*seeds)) == 20


def test_edits_of_cleanrl_hold_no_whole_lines() -> None:
    edits = [text for fault, _ in LISTS[1].faulty() for text in fault.edit]
    assert any(edits)
    assert all(len(text) < 80 and "\n" not in text for text in edits)


def test_kept_logs_are_diagnosed_as_the_files_are(tmp_path: Path) -> None:
    logs = dict[int, Log]()
    for seed in (0, 3):
        folder = sb3(
            tmp_path / f"PPO_{seed}",
            **{"train/entropy_loss": lambda share: 1.0986 * (share**2 - 1), "train/approx_kl": 5.0},
        )
        (logs[seed],) = logs_in(folder, {})
    logs[3] = Log(**{**vars(logs[3]), "settings": {"actions": 4}, "planned": 2e6})
    store.save_logs(tmp_path / "kept.npz", logs, [1.0, float("nan")])
    kept, returns = store.load(tmp_path / "kept.npz")
    assert [one.seed for one in kept] == [0, 3]
    np.testing.assert_array_equal(returns, [1.0, np.nan])
    for one, log in zip(kept, logs.values(), strict=True):
        assert (one.library, one.algorithm, one.settings) == ("sb3", "ppo", dict(log.settings))
        assert one.budget == log.budget
        assert _said(one) == _said(log)
    assert kept[0].setting("actions") == 3


def test_a_log_without_signals_is_kept(tmp_path: Path) -> None:
    empty = Log("empty", "unknown", {}, algorithm="dqn")
    one = Log("one", "unknown", {"q_mean": Signal(np.arange(3.0), np.ones(3), "q_mean")})
    store.save_logs(tmp_path / "kept.npz", {0: empty, 1: one}, [0.0, 0.0])
    first, second = store.load(tmp_path / "kept.npz")[0]
    assert (first.algorithm, first.end, second.end) == ("dqn", 0.0, 2.0)
    assert not diagnose(first).can_tell


SHARE = np.arange(101) / 100
FALLING = 1.0 - 0.9 * SHARE


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("entropy", 0.29 - 0.2 * SHARE, "entropy starts low"),
        ("entropy", 0.5 + 10.2 * SHARE, "entropy rises"),
        ("entropy", np.full(101, 0.6), "entropy stays"),
        ("entropy", FALLING - 3 * np.isin(np.arange(101), (11, 12, 13)), "entropy falls fast"),
        ("entropy", FALLING + 0.25 * (np.arange(101) % 2) * (SHARE > 0.5), "entropy fluctuates"),
        ("approx_kl", np.where(SHARE == 0.3, 0.11, 0.01), "KL is high"),
        ("value_loss", np.where(SHARE == 0.3, np.nan, 0.8**SHARE), "loss is not finite"),
        ("q_loss", 0.96 ** np.arange(101), "loss stays"),
        ("q_loss", 2.0 ** np.arange(5), "loss diverges"),
        ("q_loss", 1.5 + np.arange(101) % 2, "loss fluctuates"),
        ("episode_return_mean", np.full(101, 9.0), "returns vary little"),
        ("epsilon", np.full(101, 0.1), "exploration starts elsewhere"),
        ("epsilon", 0.95 * 1.02 ** np.arange(101), "exploration rises"),
        ("epsilon", np.where(SHARE < 0.5, 1.0, 0.1), "exploration jumps"),
        ("target_update_ratio", np.zeros(101), "target network stays"),
        ("target_error_max", np.full(101, 1e-3), "targets are others"),
        ("obs_abs_mean", np.full(101, 11.0), "observations are large"),
        ("obs_std_max", np.full(101, 1e-4), "observations stay"),
        ("reward_min", np.full(101, -11.0), "rewards are large"),
    ],
)
def test_each_rule_of_the_other_tool_warns_of_what_it_names(
    name: str, values: np.ndarray[Any, Any], rule: str
) -> None:
    assert rule in rldebugger.warnings_of(_dqn_log(**{name: values}))


def test_the_rules_of_the_other_tool_pass_a_run_as_they_expect_it() -> None:
    returns = 100 * SHARE + 30 * np.sin(np.arange(101) ** 2)
    log = _dqn_log(
        entropy=FALLING,
        approx_kl=0.01 * FALLING,
        q_loss=0.9 ** np.arange(101),
        episode_return_mean=returns,
        epsilon=0.98 - 0.9 * SHARE,
        target_update_ratio=0.1 * (np.arange(101) % 10 == 9),
        target_error_max=np.full(101, 1e-6),
        obs_abs_mean=np.full(101, 9.0),
        reward_max=np.full(101, 9.0),
    )
    assert rldebugger.warnings_of(log) == []
    assert rldebugger.warnings_of(_dqn_log()) == []


def _dqn_log(**signals: np.ndarray[Any, Any]) -> Log:
    if "entropy" in signals:
        signals["entropy_max"] = np.full(101, np.log(3))
    found = {
        name: Signal(np.linspace(0, 1e4, len(values)), values, name)
        for name, values in signals.items()
    }
    return Log("made", "unknown", found, algorithm="dqn", planned=1e4)


def _said(log: Log) -> list[tuple[str, bool, Any]]:
    found = diagnose(log)
    assert found.findings
    said = [*found.findings, *found.fine]
    return [(m.check.id, m.is_found, pytest.approx(m.value, rel=1e-4, abs=1e-6)) for m in said]


def test_an_unlucky_clean_seed_hides_an_effect_and_not_a_lower_return() -> None:
    clean, broken = np.asarray([389.0, 285, 500, 113, 500]), np.asarray([8.8, 8.8, 8.9, 8.8, 8.9])
    assert not effect.has_effect(clean, broken), "357 - 8.8 is 2.1 deviations of 164"
    assert effect.lowers_return(clean, broken), "4.8 standard errors"
    for shift in (80.0, 180.0, 300.0, 400.0):
        welch = stats.ttest_ind(
            clean, clean[::-1] * 0.9 - shift, equal_var=False, alternative="greater"
        )
        expected = welch.pvalue < effect.CHANCE
        assert effect.lowers_return(clean, clean[::-1] * 0.9 - shift) == expected
    assert not effect.lowers_return(broken[:2], broken[:2])
    assert effect.has_effect(clean[[2, 4]] + [1.0, -1.0], broken)
    assert not effect.lowers_return(clean, clean - 20.0)
    lost = np.asarray([500.0, np.nan, 500, 500, 500])
    assert effect.has_effect(clean, lost)
    assert effect.lowers_return(clean, lost)


def test_a_look_sees_what_was_logged_by_then_of_the_planned_budget() -> None:
    x = np.arange(1.0, 101)
    of = Log("a", "sb3", {"approx_kl": Signal(x, x, "kl")}, planned=100.0)
    seen = looks.until(of, 0.3)
    np.testing.assert_array_equal(seen.signals["approx_kl"].y, x[:30])
    assert (seen.end, seen.budget) == (30.0, 100.0)


@pytest.mark.medium
def test_faults_of_our_algorithms_change_code_that_exists() -> None:
    """In a process of their own, since the modules of the benchmark import each other by name."""
    program = (
        "import cases, fault, teaching\n"
        "for one in (*cases.FAULTS, *teaching.FAULTS):\n"
        "    with fault.broken(one): print(one.name)"
    )
    folder = Path(__file__).parents[4] / "benchmarks" / "faults"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 60
