"""The reward of a run gives other programs the numbers that training used."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from packages.backflip.tests.conformance.reward_model import (
    LENGTH,
    fitted,
    labelled,
    predicted,
    ready,
    some_batch,
)
from packages.backflip.tests.rewards.test_conformance import CONTINUOUS, MODELS, PIXELS, VECTOR

import backflip
from backflip.core.checkpoint import CHECKPOINT, load_arrays, save_arrays
from backflip.core.learned_actions import learned_actions
from backflip.core.spaces import row, taken
from backflip.core.spec import EnvSpec
from backflip.core.trees import row_of
from backflip.envs.native.cartpole import CartPole
from backflip.envs.native.frozen_lake import FrozenLake
from backflip.envs.spaces import learned_action, own_spaces
from backflip.export.learned_reward import LearnedReward
from backflip.preferences.clips import from_arrays, observed
from backflip.preferences.label_file import LABELS as LABEL_FILE
from backflip.preferences.labels import LabelStore
from backflip.training.result import Result
from runshelf.errors import DamagedFile, UsageError, UserFacingError
from runshelf.store.run import create_run

ROOT = Path(__file__).parents[4]
CARTPOLE = CartPole().spec
PEER = ROOT / ".cache" / "peers" / "sb3_reward" / "bin" / "python"
SMALL = {
    "num_envs": 4,
    "rollout_length": 32,
    "epochs": 1,
    "minibatches": 1,
    "hidden": (4,),
    "clip_length": 8,
    "random_envs": 8,
    "random_env_steps": 40,
}


@cache
def learned(model: str, spec: EnvSpec) -> tuple[LearnedReward, Any, Any]:
    """Return a fitted reward, its model and its parameters of all seeds."""
    own = ready(lambda labels: MODELS[model](spec, labels, LENGTH), spec)
    parameters = fitted(own, [labelled(spec), labelled(spec, 1)])
    return LearnedReward("a reward", spec, own, row_of(parameters, 1), LENGTH), own, parameters


def flat(batch: Any) -> list[np.ndarray]:
    """Return obs, action and next_obs of a batch (T, N) as rows."""
    parts = (batch.obs, batch.action, batch.next_obs)
    return [part.reshape(-1, *part.shape[2:]) for part in parts]


@pytest.mark.medium
@pytest.mark.parametrize(
    "model",
    [pytest.param(name, marks=() if name == "intervals" else pytest.mark.slow) for name in MODELS],
)
def test_rewards_are_those_of_training(model: str) -> None:
    check_rewards_are_those_of_training(model, VECTOR)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [CONTINUOUS, PIXELS], ids=lambda spec: spec.id)
@pytest.mark.parametrize("model", MODELS)
def test_rewards_are_those_of_training_elsewhere(model: str, spec: EnvSpec) -> None:
    check_rewards_are_those_of_training(model, spec)


def check_rewards_are_those_of_training(model: str, spec: EnvSpec) -> None:
    """The second route is the model's own `predict` on a batch as training passes it."""
    reward, own, parameters = learned(model, spec)
    batch = some_batch(spec)
    expected = predicted(own, parameters, batch, row=1).reshape(-1)
    obs, action, next_obs = flat(batch)
    found = reward.rewards(obs, action, next_obs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    alone = [reward.reward(*step) for step in zip(obs[:3], action[:3], next_obs[:3], strict=True)]
    assert all(type(one) is float for one in alone)
    np.testing.assert_allclose(alone, expected[:3], rtol=1e-4, atol=1e-5)
    assert reward(obs[0], action[0], next_obs[0]) == alone[0]
    ended = np.ones(len(obs), bool)
    np.testing.assert_array_equal(reward.rewards(*flat(batch), terminated=ended), found)
    spread = reward.spread(obs, action, next_obs)
    assert spread.shape == found.shape
    assert (spread >= 0).all()
    assert (spread.std() > 0) == (model != "own")  # that example has one member


@pytest.mark.medium
def test_a_batch_larger_than_a_program_is_cut_and_an_empty_one_is_empty() -> None:
    reward, _, _ = learned("linear", VECTOR)
    rng = np.random.default_rng(0)
    obs, next_obs = rng.normal(size=(2, 2_500, 2)).astype(np.float32)
    action = rng.integers(2, size=2_500)
    found = reward.rewards(obs, action, next_obs)
    for start in (0, 1_020, 2_490):
        part = slice(start, start + 10)
        few = reward.rewards(obs[part], action[part], next_obs[part])
        np.testing.assert_allclose(found[part], few, rtol=1e-4, atol=1e-5)
    assert reward.rewards(obs[:0], action[:0], next_obs[:0]).shape == (0,)
    assert reward.spread(obs[:0], action[:0], next_obs[:0]).shape == (0,)


OWN_ACTIONS = {
    "from -1": spaces.Discrete(3, start=-1),
    "several choices": spaces.MultiDiscrete([2, 3], start=[1, 0]),
    "switches": spaces.MultiBinary(3),
    "a dict of choices": spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(3, start=4)}),
    "two axes": spaces.Box(-1, 1, (2, 3), np.float64),
    "a tuple of boxes": spaces.Tuple([spaces.Box(-1, 1, (2,)), spaces.Box(0, 2, (1,))]),
}


@pytest.mark.parametrize("kind", OWN_ACTIONS)
def test_own_actions_become_the_learned_actions_that_they_come_from(kind: str) -> None:
    space = OWN_ACTIONS[kind]
    own = own_spaces("mine", spaces.Box(-1, 1, (2,)), space).action
    kind_learned = learned_action(own)
    rng = np.random.default_rng(0)
    if hasattr(kind_learned, "n"):
        chosen = np.arange(kind_learned.n, dtype=np.int32)
    else:
        low, high = kind_learned.low, kind_learned.high
        chosen = rng.uniform(low, high, (5, *kind_learned.shape)).astype(np.float32)
    actions = taken(own, chosen)
    back, single = learned_actions(own, actions, kind_learned)
    assert not single
    np.testing.assert_allclose(back, chosen, rtol=1e-6)
    one, single = learned_actions(own, row(actions, 1), kind_learned)
    assert single
    np.testing.assert_allclose(one[0], chosen[1], rtol=1e-6)


BAD: dict[str, tuple[Any, Any, Any, str]] = {
    "a longer observation": ([0, 0, 0], 0, [0, 0], r"`obs` must have shape \(2,\).*got \(3,\)"),
    "a shorter next one": ([0, 0], 0, [0], r"`next_obs` must have shape \(2,\).*got \(1,\)"),
    "an action outside": ([0, 0], 2, [0, 0], "`action` must be a number from 0 to 1, got 2"),
    "an action that is a float": ([0, 0], 0.0, [0, 0], "`action` must be a whole number"),
    "an action of a vector": ([0, 0], [[0]], [0, 0], "`action` must be a whole number"),
    "NaN": ([0, np.nan], 0, [0, 0], "`obs` has numbers that are not finite"),
    "text": ("left", 0, [0, 0], "`obs` must be an array of numbers, got <U4"),
    "complex": ([1j, 0], 0, [0, 0], "`obs` must be an array of numbers, got complex128"),
    "too large": ([1e300, 0], 0, [0, 0], "`obs` has numbers that are not finite"),
    "rows of unequal length": ([[0], [0, 0]], 0, [0, 0], "must be arrays of numbers"),
    "nothing": (None, 0, [0, 0], "`obs` must be an array of numbers, got object"),
    "a batch and a step": ([[0, 0]], 0, [0, 0], "one step each, or batches of one size"),
    "a batch": ([[0, 0]], [0], [[0, 0]], "for a batch of steps call `rewards`"),
}


@pytest.mark.medium
@pytest.mark.parametrize("kind", BAD)
def test_what_is_not_in_the_spaces_is_refused_in_one_line(kind: str) -> None:
    *step, message = BAD[kind]
    with pytest.raises(UsageError, match=message) as refused:
        learned("linear", VECTOR)[0].reward(*step)
    assert "\n" not in str(refused.value)


@pytest.mark.medium
def test_images_of_fractions_and_actions_that_are_not_finite_are_refused() -> None:
    pixels, _, _ = learned("linear", PIXELS)
    image = np.zeros(PIXELS.observation.shape, np.float32)
    with pytest.raises(UsageError, match="`obs` must be an array of whole numbers, got float32"):
        pixels.reward(image, 0, image)
    with pytest.raises(UsageError, match="`obs` must have shape"):  # the newest frame alone
        pixels.reward(image[..., :1].astype(np.uint8), 0, image.astype(np.uint8))
    continuous, _, _ = learned("linear", CONTINUOUS)
    with pytest.raises(UsageError, match="`action` has numbers that are not finite"):
        continuous.reward(np.zeros(3), [np.nan, 0], np.zeros(3))
    with pytest.raises(UsageError, match=r"`terminated` must have shape \(1,\) of bool"):
        continuous.rewards(np.zeros((1, 3)), np.zeros((1, 2)), np.zeros((1, 3)), terminated=[1])


@pytest.mark.medium
def test_a_model_that_reads_the_true_reward_is_noticed() -> None:
    _, _, parameters = learned("own", VECTOR)

    class Reads(MODELS["own"]):
        def predict(self, parameters: Any, batch: Any) -> Any:
            return super().predict(parameters, batch) + batch.reward

    cheat: Any = Reads(VECTOR, 2, LENGTH)
    reward = LearnedReward("a reward", VECTOR, cheat, row_of(parameters, 0), LENGTH)
    with pytest.raises(UserFacingError, match="a reward is nan in step 0, expected"):
        reward.reward([0, 0], 0, [0, 0])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def taught(home: Path) -> Result:
    settings = SMALL | {"reward_model": "linear", "phases": 2}
    return backflip.teach(
        "CartPole-v1", labels=6, seeds=2, first_seed=3, env_steps=256, settings=settings, home=home
    )


@pytest.mark.slow
def test_the_reward_of_a_run_is_that_of_its_labelled_clips(home: Path, taught: Result) -> None:
    """The second route is the model's `opinions` with the arrays of the checkpoint."""
    run = backflip.load_run(taught.run, home=home)
    arrays = load_arrays(taught.folder / CHECKPOINT).arrays
    for place, seed in enumerate((3, 4)):
        reward = backflip.load_reward("latest", seed, home=home)
        np.testing.assert_array_equal(reward._parameters.weights, arrays["reward.weights"][place])
        with LabelStore.open_existing(taught.folder / LABEL_FILE) as store:
            query = store.in_force(seed, 256)[0].query
            clip = observed(from_arrays(store.clips(query)[0]))
        opinions = reward._model.opinions(reward._parameters, [clip])
        assert opinions is not None
        found = reward.rewards(clip.obs, clip.action, clip.next_obs)
        np.testing.assert_allclose(found * clip.alive, opinions.reward[0], rtol=1e-4, atol=1e-5)
        spread = reward.spread(clip.obs, clip.action, clip.next_obs)
        np.testing.assert_allclose(spread * clip.alive, opinions.spread[0], rtol=1e-3, atol=1e-4)
    step = (clip.obs[0], int(clip.action[0]), clip.next_obs[0])
    assert run.reward(4)(*step) == reward(*step)
    assert run.reward()(*step) == backflip.load_reward(taught.folder, 3)(*step)
    assert "CartPole-v1" in repr(reward)


@pytest.mark.slow
def test_a_run_without_its_policy_or_with_an_old_manifest_gives_the_same_reward(
    home: Path, taught: Result, tmp_path: Path
) -> None:
    """Old runs have fewer settings of teaching; a child has no policy before its first phase."""
    step = (np.zeros(4), 1, np.full(4, 0.1))
    expected = backflip.load_reward(taught.folder)(*step)
    old = tmp_path / "runs" / taught.folder.name
    shutil.copytree(taught.folder, old)
    for policy in old.glob("policy*"):
        policy.unlink()
    manifest = (old / "run.json").read_text()
    assert manifest.count('"reward_model": "linear"') == 1
    (old / "run.json").write_text(manifest.replace('"reward_model": "linear"', '"repeat": 0.8'))
    assert backflip.load_reward(old)(*step) == expected


@pytest.mark.slow
def test_runs_without_a_reward_and_damaged_ones_are_refused(
    home: Path, taught: Result, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="has no seed 9; it has 3, 4"):
        backflip.load_reward(taught.run, 9, home=home)
    with create_run(tmp_path, command="run", config={}, argv=["sh"]):
        pass
    with pytest.raises(UsageError, match="of kind `run` has no reward model"):
        backflip.load_reward("latest", home=tmp_path)
    copy = tmp_path / "copy" / "runs" / taught.folder.name
    shutil.copytree(taught.folder, copy)
    loaded = load_arrays(copy / CHECKPOINT)
    kept = {name: x for name, x in loaded.arrays.items() if name != "reward.weights"}
    save_arrays(copy / CHECKPOINT, kept, loaded.metadata)
    with pytest.raises(DamagedFile, match="`weights` is missing"):
        backflip.load_reward(copy)
    one = {name: x[:1] if name.startswith("reward.") else x for name, x in loaded.arrays.items()}
    save_arrays(copy / CHECKPOINT, one, loaded.metadata)
    with pytest.raises(DamagedFile, match="does not have one row for each seed"):
        backflip.load_reward(copy)
    few = {name: x for name, x in kept.items() if not name.startswith("reward.")}
    save_arrays(copy / CHECKPOINT, few, loaded.metadata)
    with pytest.raises(DamagedFile, match="its reward model is for other observations"):
        backflip.load_reward(copy)


@pytest.mark.medium
def test_an_environment_gives_the_learned_reward_and_keeps_the_true_one() -> None:
    reward, _, _ = learned("linear", CARTPOLE)
    env, plain = reward.wrap(gymnasium.make("CartPole-v1")), gymnasium.make("CartPole-v1")
    with pytest.raises(UsageError, match="call `reset` before"):
        reward.wrap(gymnasium.make("CartPole-v1").unwrapped).step(0)
    obs, _ = env.reset(seed=1)
    before, _ = plain.reset(seed=1)
    for action in [1, 0] * 3 + [1] * 20:
        obs, given, terminated, truncated, info = env.step(action)
        after, true, *_ = plain.step(action)
        np.testing.assert_array_equal(obs, after)
        assert given == reward(before, action, after)
        assert info["true_reward"] == true == 1.0
        before = after
        if terminated or truncated:
            break
    assert terminated


@pytest.mark.medium
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_checks_the_environment() -> None:
    reward, _, _ = learned("linear", CARTPOLE)
    check_env(reward.wrap(gymnasium.make("CartPole-v1")), skip_render_check=True)


@pytest.mark.medium
def test_another_environment_is_not_wrapped() -> None:
    reward, _, _ = learned("linear", CARTPOLE)
    with pytest.raises(UsageError, match=r"its observation was \(4,\), now \(3,\)"):
        reward.wrap(gymnasium.make("Pendulum-v1"))
    normalised = gymnasium.wrappers.NormalizeObservation(gymnasium.make("CartPole-v1"))
    with pytest.raises(UsageError, match="normalises observations"):
        reward.wrap(gymnasium.wrappers.RecordEpisodeStatistics(normalised))
    wrapped = gymnasium.wrappers.TimeLimit(reward.wrap(gymnasium.make("CartPole-v1")), 10)
    with pytest.raises(UsageError, match="has a learned reward already"):
        reward.wrap(wrapped)
    with pytest.raises(UsageError, match=r"one gymnasium\.Env, got .*VectorEnv"):
        reward.wrap(gymnasium.make_vec("CartPole-v1", 2))  # pyright: ignore[reportArgumentType]
    bounds, _, _ = learned("linear", CONTINUOUS)

    class Narrow(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(-2, 2, (3,))
        action_space = spaces.Box(-1, 1, (2,))

    with pytest.raises(UsageError, match="its actions have other bounds"):
        bounds.wrap(Narrow())


@pytest.mark.slow
def test_code_that_a_received_run_names_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "docs" / "examples" / "reward_model.py", tmp_path / "own_reward_model.py")
    monkeypatch.chdir(tmp_path)
    settings = SMALL | {"reward_model": "own_reward_model:MyRewardModel", "phases": 2}
    result = backflip.teach("CartPole-v1", labels=4, env_steps=256, settings=settings)
    step = (np.zeros(4), 1, np.full(4, 0.1))
    assert np.isfinite(backflip.load_reward("latest")(*step))
    received = tmp_path / "received" / "runs" / result.folder.name
    shutil.copytree(result.folder, received)
    for mark in received.glob("trust*"):
        mark.unlink()
    jax.clear_caches()
    monkeypatch.setattr("backflip.training.named_code.is_trusted", lambda folder: False)
    with pytest.raises(UsageError, match="own_reward_model:MyRewardModel"):
        backflip.load_reward(received)


@pytest.mark.medium
def test_without_stable_baselines_a_vec_env_is_refused_in_one_line() -> None:
    reward, _, _ = learned("linear", VECTOR)
    if "stable_baselines3" in sys.modules:
        pytest.skip("it is installed here")
    with pytest.raises(UsageError, match="`wrap_vec_env` needs Stable-Baselines3"):
        reward.wrap_vec_env(object())


VEC_ENV = """
import sys
import gymnasium, numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
from runshelf.errors import UsageError
import backflip
reward = backflip.load_reward(sys.argv[1])
plain, vec = (make_vec_env("CartPole-v1", n_envs=3, seed=5) for _ in range(2))
vec = reward.wrap_vec_env(vec)
before, _ = plain.reset(), vec.reset()
rng, ended = np.random.default_rng(0), 0
for _ in range(120):
    actions = rng.integers(2, size=3)
    obs, true, dones, infos = plain.step(actions)
    seen, given, over, told = vec.step(actions)
    assert np.array_equal(obs, seen) and np.array_equal(dones, over)
    for i in range(3):
        after = infos[i]["terminal_observation"] if dones[i] else obs[i]
        expected = reward(before[i], actions[i], after)
        assert abs(given[i] - expected) < 1e-4, (given[i], expected)
        assert told[i]["true_reward"] == true[i]
        ended += dones[i]
    before = obs
assert ended > 3
try:
    reward.wrap_vec_env(make_vec_env("Pendulum-v1"))
except UsageError as error:
    assert "now (3,)" in str(error)
else:
    raise AssertionError
try:
    reward.wrap_vec_env(VecMonitor(VecNormalize(make_vec_env("CartPole-v1"))))
except UsageError as error:
    assert "normalises observations" in str(error)
else:
    raise AssertionError
reward.wrap_vec_env(VecNormalize(make_vec_env("CartPole-v1"), norm_obs=False))
model = PPO("MlpPolicy", vec, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
model.learn(200)
print("learned", model.num_timesteps)
"""


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="benchmarks/peers/install.py sb3_reward makes it")
def test_stable_baselines_learns_from_the_reward_of_a_run(taught: Result) -> None:
    """Stable-Baselines3 itself, in an environment of its own."""
    code = [str(ROOT / "packages" / name / "src") for name in ("backflip", "runshelf")]
    done = subprocess.run(
        [PEER, "-c", VEC_ENV, taught.folder],
        env={"PYTHONPATH": ":".join(code), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("learned")


@pytest.mark.medium
@pytest.mark.parametrize(
    ("observation", "action", "told"),
    [
        (spaces.Box(-1, 1, (4,)), spaces.Discrete(2, start=1), "now one of 2, from 1 on"),
        (spaces.Box(-1, 1, (4,)), spaces.MultiDiscrete([2]), "now choices among 2"),
        (spaces.Tuple([spaces.Box(-1, 1, (4,))]), spaces.Discrete(2), r"now a tuple \(0: numbers"),
        (spaces.Dict(a=spaces.Box(-1, 1, (4,))), spaces.Discrete(2), r"now a dict \(a: numbers"),
    ],
)
def test_spaces_of_another_kind_are_refused(
    observation: spaces.Space[Any], action: spaces.Space[Any], told: str
) -> None:
    """They have as many numbers, but mean something else: the reward would be of other actions."""
    reward, _, _ = learned("linear", CARTPOLE)

    class Other(gymnasium.Env[Any, Any]):
        observation_space = observation
        action_space = action

    with pytest.raises(UsageError, match=told):
        reward.wrap(Other())


@pytest.mark.medium
def test_choices_of_gymnasium_fit_a_built_in_environment() -> None:
    reward, _, _ = learned("linear", FrozenLake().spec)
    reward.wrap(gymnasium.make("FrozenLake-v1"))
