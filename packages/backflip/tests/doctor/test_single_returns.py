"""Returns of single episodes: three routes to one number."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages.backflip.tests.doctor.log_writers import write_csv

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.log import Log
from backflip.doctor.reading.log_files import logs_in
from backflip.doctor.reading.single_returns import sums

RETURN, LENGTH = "episode_return_mean", "episode_length_mean"


def played(seed: int, episodes: int = 260) -> tuple[Any, Any]:
    """Return the returns and lengths of episodes that get better."""
    rng = np.random.default_rng(seed)
    returns = rng.normal(np.linspace(-100.0, 100.0, episodes), 30.0)
    return returns, rng.integers(1, 200, episodes).astype(np.float64)


def progress(folder: Path, returns: Any, lengths: Any, every: int, window: int = 100) -> Path:
    """Write `progress.csv` with a line for `every` episodes, as the library writes it."""
    rows = list[dict[str, Any]]()
    for count in range(every, len(returns) + 1, every):
        last = slice(max(0, count - window), count)
        row = {"time/episodes": count, "time/total_timesteps": int(lengths[:count].sum())}
        row |= {"rollout/ep_rew_mean": returns[last].mean(), "train/critic_loss": 1.0 / count}
        rows.append({**row, "rollout/ep_len_mean": lengths[last].mean(), "time/fps": 100})
    return write_csv(folder / "SAC_1" / "progress.csv", rows).parent


def monitor(folder: Path, returns: Any, lengths: Any) -> None:
    """Write the file of a Monitor."""
    lines = ['#{"t_start": 1.0, "env_id": "Task-v0"}', "r,l,t"]
    pairs = zip(returns, lengths, strict=True)
    lines += [f"{one},{int(length)},{at}" for at, (one, length) in enumerate(pairs)]
    (folder / "0.monitor.csv").write_text("\n".join(lines) + "\n")


def read(folder: Path) -> Log:
    """Return the only log of a folder."""
    (log,) = logs_in(folder, {})
    return log


@pytest.mark.parametrize("every", [1, 4, 25])
def test_means_of_the_last_hundred_hold_those_of_the_newest(tmp_path, every):
    returns, lengths = played(every)
    log = read(progress(tmp_path, returns, lengths, every))
    blocks = [returns[at : at + every].mean() for at in range(0, len(returns) - every + 1, every)]
    np.testing.assert_allclose(log.signals[RETURN].y, blocks, rtol=1e-6, atol=1e-6)
    assert log.signals["episodes"].y.tolist() == [every] * len(blocks)
    assert np.sum(log.signals[LENGTH].y * every) == pytest.approx(log.end)
    assert log.signals[RETURN].how


def test_three_sums_by_hand():
    """Returns 1, 2, 3, 4, 5 with means of the last two."""
    means, counts = np.asarray([1.0, 1.5, 2.5, 3.5, 4.5]), np.arange(1.0, 6.0)
    found = sums(means, counts, window=2)
    assert found is not None
    assert found.tolist() == [1.0, 3.0, 6.0, 10.0, 15.0]


@pytest.mark.parametrize(
    ("every", "window", "first"),
    [
        pytest.param(7, 100, 0, id="lines that miss the hundreds"),
        pytest.param(4, 20, 0, id="means of the last 20"),
        pytest.param(4, 100, 120, id="a log that begins late"),
    ],
)
def test_means_that_do_not_tell_stay_means(tmp_path, every, window, first):
    returns, lengths = played(0)
    folder = progress(tmp_path, returns, lengths, every, window)
    path = folder / "progress.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[1 + first // every :]]) + "\n")
    log = read(folder)
    assert "episodes" not in log.signals
    count = len(returns) // every * every
    assert log.signals[RETURN].y[-1] == pytest.approx(returns[count - window : count].mean())


def test_returns_that_are_not_numbers_stay_so(tmp_path):
    returns, lengths = played(4)
    log = read(progress(tmp_path, returns * np.nan, lengths, 4))
    assert np.isnan(log.signals[RETURN].y).all()
    assert len(log.signals[RETURN].y) == len(returns) // 4


def test_a_monitor_says_the_same_and_comes_first(tmp_path):
    returns, lengths = played(1)
    folder = progress(tmp_path, returns, lengths, 1)
    unrolled = read(folder)
    monitor(folder, returns, lengths)
    log = read(folder)
    np.testing.assert_allclose(log.signals[RETURN].y, unrolled.signals[RETURN].y, rtol=1e-6)
    np.testing.assert_array_equal(log.signals[RETURN].x, unrolled.signals[RETURN].x)
    assert (log.signals[RETURN].logged_as, log.env) == ("r", "Task-v0")
    assert log.signals["episodes"].y.tolist() == [1.0] * len(returns)


def test_a_monitor_of_other_episodes_is_not_used(tmp_path):
    """Such as that of an environment for evaluation: its env steps are not those of the log."""
    returns, lengths = played(2)
    folder = progress(tmp_path, returns, lengths, 4)
    monitor(folder, returns[:40], lengths[:40])
    assert read(folder).signals[RETURN].logged_as == "rollout/ep_rew_mean"


def test_a_monitor_without_episodes_changes_nothing(tmp_path):
    returns, lengths = played(3)
    folder = progress(tmp_path, returns, lengths, 4)
    monitor(folder, [], [])
    assert read(folder).signals[RETURN].logged_as == "rollout/ep_rew_mean"


def test_episodes_of_a_long_monitor_are_joined(tmp_path):
    returns, lengths = played(1, episodes=1_000)
    folder = progress(tmp_path, returns, lengths, 20)
    monitor(folder, returns, lengths)
    log = read(folder)
    np.testing.assert_allclose(log.signals[RETURN].y, returns.reshape(200, 5).mean(1), rtol=1e-6)
    assert log.signals["episodes"].y.tolist() == [5.0] * 200
    assert log.signals[RETURN].x[-1] == lengths.sum()


def two_levels(rng: np.random.Generator, chance: Any) -> Any:
    return np.where(rng.random(len(chance)) < chance, 200.0, -200.0) + rng.normal(
        0.0, 10.0, len(chance)
    )


def won_or_lost(rng: np.random.Generator, chance: Any) -> Any:
    return (rng.random(len(chance)) < chance).astype(np.float64)


def skewed(rng: np.random.Generator, chance: Any) -> Any:
    return rng.lognormal(chance)


@pytest.mark.medium
@pytest.mark.parametrize("episodes", [200, 1_000])
@pytest.mark.parametrize("kind", [two_levels, won_or_lost, skewed])
@pytest.mark.parametrize(("first", "last"), [(0.4, 0.4), (0.5, 0.5), (0.4, 0.8)])
def test_returns_of_few_levels_are_neither_lost_nor_worse(tmp_path, kind, episodes, first, last):
    """From the first chance to the last, in both ways: nothing is learned, or it is and stays."""
    wrong = 0
    for seed in range(20):
        rng, folder = np.random.default_rng(seed), tmp_path / str(seed)
        chance = np.minimum(np.linspace(first, 2.0 * last - first, episodes), last)
        returns, lengths = kind(rng, chance), np.full(episodes, 50.0)
        run = progress(folder, returns, lengths, 20)
        monitor(run, returns, lengths)
        found = {one.check.id for one in diagnose(read(run)).findings}
        wrong += bool(found & {"ENV-DROP", "ENV-WORSE"})
    assert wrong <= 1  # as medians of single values, 13 to 30 of 30


@pytest.mark.medium
@pytest.mark.parametrize("noise", [1.0, 3.0])
@pytest.mark.parametrize("episodes", [200, 500, 1_000])
def test_single_returns_that_change_slowly_are_worse_or_rise(tmp_path, episodes, noise):
    """Also where single returns vary more than their means change."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rising = rng.normal(np.linspace(2.0, 10.0, episodes), noise)
        for name, returns in (("rises", rising), ("falls", -rising)):
            run = progress(tmp_path / f"{seed}-{name}", returns, np.full(episodes, 50.0), 20)
            monitor(run, returns, np.full(episodes, 50.0))
            found = diagnose(read(run))
            said = {one.check.id for one in [*found.findings, *found.remarks]}
            assert ("ENV-WORSE" in said) == (name == "falls")
            assert ("ENV-NOTHING" in said) == (name == "falls")
