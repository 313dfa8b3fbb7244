"""Tests of former names of settings: old runs and policies open, and --set names the new name."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backflip.algorithms.registry import algorithms, names
from backflip.core.checkpoint import CHECKPOINT, load_arrays, save_arrays
from backflip.training.algorithm_config import configure
from backflip.training.build import rebuild
from backflip.training.fingerprint import fingerprint
from backflip.training.policy import POLICY, load_policy
from backflip.training.renamed_settings import ALIASES, RENAMED, current_names
from backflip.training.train import resume_train, train
from runshelf.errors import UsageError
from runshelf.store.finding import find_run

# The names that saved configurations had before the renames, written by hand.
COMMON = {"env_steps", "num_envs", "rollout_length"}
ON_POLICY = COMMON | {
    "learning_rate", "discount", "decay", "hidden", "network", "initial_log_std", "normalize_obs",
    "scale_rewards",
}  # fmt: skip
OFF_POLICY = COMMON | {
    "updates_per_step", "batch_size", "buffer_size", "warm_up", "discount", "target_rate", "hidden",
}  # fmt: skip
ACTOR_CRITIC = OFF_POLICY | {"actor_learning_rate", "critic_learning_rate"}
FORMER = {
    "ppo": ON_POLICY
    | {"epochs", "minibatches", "learning_rate_end", "clip", "clip_end", "entropy_bonus"}
    | {"entropy_bonus_end", "value_weight", "value_clip", "max_grad_norm"},
    "a2c": ON_POLICY
    | {"learning_rate_end", "rms_decay", "rms_epsilon", "entropy_bonus", "value_weight"}
    | {"max_grad_norm", "normalize_advantage"},
    "vpg": ON_POLICY | {"advantage", "value_learning_rate", "value_steps"},
    "dqn": OFF_POLICY
    | {"learning_rate", "learning_rate_end", "target_update", "exploration_start"}
    | {"exploration_end", "exploration_steps", "double", "dueling", "n_step", "loss"}
    | {"clip_rewards", "prioritized", "priority_exponent", "priority_correction"}
    | {"max_grad_norm", "network"},
    "ddpg": ACTOR_CRITIC | {"exploration_noise"},
    "td3": ACTOR_CRITIC
    | {"exploration_noise", "target_noise", "target_noise_clip", "policy_delay"},
    "sac": ACTOR_CRITIC
    | {"temperature_learning_rate", "initial_temperature", "entropy_per_dimension"}
    | {"entropy_share", "network"},
    "cem": COMMON | {"episodes", "elite_share", "initial_std", "noise", "noise_end", "hidden"},
}
# Settings that came later; their defaults leave old runs as they are.
ADDED = {
    "ppo": {
        "advantage_floor",
        "bound_mean",
        "episode_steps",
        "least_log_std",
        "noise_color",
        "whole_share",
        "wrap_angles",
    }
}
FORMER_NAMES = {new: old for old, new in RENAMED.items()}


def former(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as they were saved before the renames."""
    return {FORMER_NAMES.get(name, name): value for name, value in settings.items()}


@pytest.mark.parametrize("name", names())
def test_a_former_configuration_has_all_current_settings(name: str) -> None:
    fields = {field.name for field in dataclasses.fields(algorithms()[name].config)}
    assert set(current_names(dict.fromkeys(FORMER[name], 0))) == fields - ADDED.get(name, set())


def test_former_names_are_unique_and_unused() -> None:
    today = {setting for entry in algorithms().values() for setting in entry.settings}
    assert set(RENAMED.values()) <= today
    assert not set(RENAMED) & today
    assert set().union(*FORMER.values()) - today == set(RENAMED)


def test_every_alias_refers_to_existing_settings() -> None:
    today = {setting for entry in algorithms().values() for setting in entry.settings}
    assert {name for meant in ALIASES.values() for name in meant} <= today
    assert all(alias == alias.casefold() for alias in ALIASES)


@pytest.mark.parametrize(
    ("algorithm", "given", "said"),
    [
        ("ppo", {"decay": 0.9}, "`decay` is now called `gae_lambda`; try --set gae_lambda=0.9"),
        ("dqn", {"warm_up": 9}, "`warm_up` is now called `learning_starts`; try --set learning_st"),
        ("sac", {"target_rate": 1.0}, "`target_rate` is now called `tau`; try --set tau=1.0"),
        ("sac", {"decay": 0.9}, "unknown settings `decay`"),
        ("ppo", {"lr": 0.1}, "unknown settings `lr`, did you mean `learning_rate`?"),
        ("td3", {"lr": 0.1}, "unknown settings `lr`, did you mean `actor_learning_rate`?"),
        ("ppo", {"gamma": 0.9}, "`gamma`, did you mean `discount`?"),
        ("ppo", {"lam": 0.9}, "`lam`, did you mean `gae_lambda`?"),
        ("ppo", {"ent_coef": 0.0}, "`ent_coef`, did you mean `entropy_coef`?"),
        ("ppo", {"vf_coef": 0.5}, "`vf_coef`, did you mean `value_coef`?"),
        ("ppo", {"clip_coef": 0.2}, "`clip_coef`, did you mean `clip_range`?"),
        ("ppo", {"n_steps": 8}, "`n_steps`, did you mean `rollout_length`?"),
        ("ppo", {"num_steps": 8}, "`num_steps`, did you mean `rollout_length`?"),
        ("ppo", {"total_timesteps": 8}, "`total_timesteps`, did you mean `env_steps`?"),
        ("ppo", {"LR": 0.1}, "`LR`, did you mean `learning_rate`?"),
        ("ppo", {"batch_size": 64}, "`batch_size`, did you mean `minibatches` (how many minib"),
        ("ppo", {"n_epochs": 4}, "`n_epochs`, did you mean `epochs`?"),
        ("ppo", {"clip_range_vf": 1}, "`clip_range_vf`, did you mean `value_clip_range`?"),
        ("dqn", {"n_epochs": 4}, "unknown settings `n_epochs` (known"),
        ("ppo", {"target_kl": 0.01}, "unknown settings `target_kl` (known"),
        ("dqn", {"start_e": 1.0}, "`start_e`, did you mean `epsilon_start`?"),
        ("dqn", {"exploration_fraction": 0.1}, "`epsilon_steps` (env steps, not a share of them)"),
        ("dqn", {"target_network_frequency": 9}, "did you mean `target_update_interval`?"),
        ("ddpg", {"polyak": 0.995}, "`polyak`, did you mean `tau` (1 - polyak)?"),
        ("ddpg", {"act_noise": 0.1}, "`act_noise`, did you mean `exploration_noise`?"),
        ("td3", {"policy_noise": 0.1}, "`policy_noise`, did you mean `target_noise`?"),
        ("sac", {"policy_lr": 0.1}, "`policy_lr`, did you mean `actor_learning_rate`?"),
        ("sac", {"ent_coef": 0.1}, "`ent_coef`, did you mean `initial_temperature`?"),
    ],
)
def test_other_names_are_refused_with_the_current_one(
    algorithm: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        configure(algorithms()[algorithm], given)
    assert said in str(refused.value)


def with_former_names(folder: Path) -> None:
    """Rewrite a run on disk as it was saved before the renames."""
    manifest = json.loads((folder / "run.json").read_text())
    manifest["config"]["settings"] = former(manifest["config"]["settings"])
    (folder / "run.json").write_text(json.dumps(manifest))
    run = find_run(folder.parents[1], folder.name)
    for path, where in ((folder / POLICY, []), (folder / CHECKPOINT, ["config", "config"])):
        loaded = load_arrays(path)
        about = json.loads(loaded.metadata["about"])
        config = functools.reduce(lambda part, key: part[key], where, about)
        config["settings"] = former(config["settings"])
        metadata = {**loaded.metadata, "about": json.dumps(about)}
        if "fingerprint" in metadata:
            metadata["fingerprint"] = fingerprint(run)
        save_arrays(path, loaded.arrays, metadata)


@pytest.mark.slow
def test_a_run_with_former_names_is_rebuilt_watched_and_resumed(tmp_path: Path) -> None:
    small = {"num_envs": 2, "rollout_length": 16, "epochs": 1, "gae_lambda": 0.7, "hidden": (8,)}
    done = train("ppo", "CartPole-v1", env_steps=64, settings=small, home=tmp_path)
    obs = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    before = load_policy(done.folder).act(obs)
    config = rebuild(find_run(tmp_path, done.run)).config
    with_former_names(done.folder)
    run = find_run(tmp_path, done.run)
    assert run.config["settings"]["decay"] == 0.7
    assert "gae_lambda" not in run.config["settings"]
    assert rebuild(run).config == config
    np.testing.assert_array_equal(load_policy(done.folder).act(obs), before)
    assert resume_train(run).returns == done.returns
