"""The callback and the adapter of Stable-Baselines3, with Stable-Baselines3 itself."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from backflip.doctor.diagnosis import diagnose
from backflip.doctor.measures import together
from backflip.doctor.reading.log_files import logs_in

ROOT = Path(__file__).parents[4]
PEER = ROOT / ".cache" / "peers" / "sb3_reward" / "bin" / "python"
needs_peer = pytest.mark.skipif(
    not PEER.exists(), reason="benchmarks/peers/install.py sb3_reward makes it"
)

PPO = """
import sys
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from backflip.doctor.sb3 import DoctorCallback

class Moved(DoctorCallback):
    def _on_rollout_end(self):
        if {broken}:
            self.model.rollout_buffer.log_probs[:] += 0.3
        super()._on_rollout_end()

env = make_vec_env("CartPole-v1", 4, env_kwargs=dict(max_episode_steps=50))
model = PPO("MlpPolicy", env, n_steps=64, seed=0, device="cpu")
model.learn(8_000, callback=Moved(sys.argv[1]))
"""
DQN = """
import sys
from stable_baselines3 import DQN

from backflip.doctor.sb3 import DoctorCallback

model = DQN("MlpPolicy", "CartPole-v1", seed=0, device="cpu", learning_starts=100)
model.learn(12_000, callback=DoctorCallback(sys.argv[1], every=500))
"""
# A dictionary of observations; with `broken`, actions are replaced and drawn observations scaled.
PATHS = """
import sys
import gymnasium
import numpy as np
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env

from backflip.doctor.sb3 import DoctorCallback

class Named(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Dict({{"cart": env.observation_space}})

    def observation(self, obs):
        return {{"cart": obs}}

class Scaled(ReplayBuffer):
    def _get_samples(self, rows, env=None):
        drawn = super()._get_samples(rows, env)
        return drawn._replace(observations=10 * drawn.observations)

def stuck(env):
    return gymnasium.wrappers.TransformAction(env, lambda action: 0, env.action_space)

def wrapped(env):
    return Named(stuck(env) if {broken} else env)

if sys.argv[2] == "ppo":
    env = make_vec_env("CartPole-v1", 4, wrapper_class=wrapped)
    model = PPO("MultiInputPolicy", env, n_steps=128, seed=0, device="cpu")
else:
    kind = Scaled if {broken} else ReplayBuffer
    model = DQN("MlpPolicy", "CartPole-v1", seed=0, device="cpu", replay_buffer_class=kind)
model.learn(6_000, callback=DoctorCallback(sys.argv[1], every=500))
"""
SAME = """
from stable_baselines3 import DQN, SAC

from backflip.doctor.sb3 import DoctorCallback

def learned(kind, env, callback):
    model = kind("MlpPolicy", env, seed=0, device="cpu", learning_starts=64, train_freq=8)
    model.learn(600, callback=callback)
    return [one.detach().numpy().tobytes() for one in model.policy.parameters()]

for kind, env in [(DQN, "CartPole-v1"), (SAC, "Pendulum-v1")]:
    callback = DoctorCallback("{path}", every=100)
    print(learned(kind, env, None) == learned(kind, env, callback))
"""
PROBE = """
import sys
from stable_baselines3 import PPO

from backflip.doctor.probing.learner import FromStableBaselines3
from backflip.doctor.probing.others import probe_other

def make(env, seed):
    net = dict(net_arch=[16, 16])
    model = PPO("MlpPolicy", env, seed=seed, n_steps=128, learning_rate=1e-2, gamma=0.9,
                policy_kwargs=net, device="cpu")
    return FromStableBaselines3(model)

sys.modules["mine"] = sys.modules["__main__"]
print([one.probe.id for one in probe_other("mine:make", 3_000) if not one.passed])
"""
WRAPPED = """
import gymnasium
from gymnasium import wrappers
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from backflip.doctor.sb3_models import env_of

def same(env):
    return wrappers.TransformAction(wrappers.TransformObservation(
        env, lambda obs: 2 * obs, env.observation_space), lambda a: a, env.action_space)

def scaled(env):
    return wrappers.TransformReward(env, lambda r: 2 * r)

class Sooner(gymnasium.Wrapper):
    def step(self, action):
        obs, reward, _, truncated, info = self.env.step(action)
        return obs, reward, True, truncated, info

for env, wrapper in [("CartPole-v1", same), ("CartPole-v1", scaled), ("CartPole-v1", Sooner)]:
    model = PPO("MlpPolicy", make_vec_env(env, 1, wrapper_class=wrapper), device="cpu")
    print(env_of(model))
inside = make_vec_env(lambda: scaled(gymnasium.make("CartPole-v1")), 1)
print(env_of(PPO("MlpPolicy", inside, device="cpu")))
"""

# A subclass with dropout in its network, evaluated by the library, in two calls of `learn`.
SUBCLASS = """
import sys
import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.torch_layers import FlattenExtractor

from backflip.doctor.sb3 import DoctorCallback

class Mine(PPO):
    pass

class Dropping(FlattenExtractor):
    def __init__(self, space):
        super().__init__(space)
        self.flatten = torch.nn.Sequential(self.flatten, torch.nn.Dropout({dropout}))

kwargs = dict(features_extractor_class=Dropping)
model = Mine("MlpPolicy", "CartPole-v1", n_steps=256, seed=0, device="cpu", policy_kwargs=kwargs)
for _ in range(2):
    evaluated = EvalCallback(gymnasium.make("CartPole-v1"), eval_freq=500, verbose=0)
    both = [evaluated, DoctorCallback(sys.argv[1])]
    model.learn(2_048, callback=both, reset_num_timesteps=False)
"""
# Rewards of about -1,000, normalised by the library; `n` rewards are summed.
NORMALISED = """
import sys
import gymnasium
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from backflip.doctor.sb3 import DoctorCallback

def costly(env):
    return gymnasium.wrappers.TransformReward(env, lambda r: 100 * r)

env = VecNormalize(make_vec_env("Pendulum-v1", 1, wrapper_class=costly), clip_reward=10.0)
more = dict(n_steps={n}) if {n} > 1 else dict()
model = SAC("MlpPolicy", env, seed=0, device="cpu", learning_starts=100, **more)
model.learn(2_000, callback=DoctorCallback(sys.argv[1], every=100))
"""


def with_sb3(program: str, *arguments: object) -> str:
    """Run a program beside Stable-Baselines3, and return what it printed."""
    code = [str(ROOT / "packages" / name / "src") for name in ("backflip", "runshelf")]
    done = subprocess.run(
        [PEER, "-c", program, *map(str, arguments)],
        env={"PYTHONPATH": ":".join(code), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_peer
@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_the_callback_sees_the_ratio_of_the_first_minibatch(tmp_path: Path, broken: bool) -> None:
    with_sb3(PPO.format(broken=broken), tmp_path / "doctor.csv")
    (log,) = logs_in(tmp_path / "doctor.csv", {})
    assert (log.algorithm, log.setting("discount"), log.setting("num_envs")) == ("ppo", 0.99, 4)
    assert (log.env, log.planned) == (None, 8_000), "another time limit, another environment"
    assert log.has("entropy_max", "advantage_std", "reward_min", "update_ratio", "approx_kl")
    assert len(log.signals["first_ratio_error"].x) == 32
    assert len(log.signals["seconds"].x) == 32
    assert 0 <= log.signals["seconds"].y[0] < log.signals["seconds"].y[-1] < 600
    counts, lengths = log.signals["episodes"], log.signals["episode_length_mean"]
    assert 7_000 < together(counts, lengths, np.multiply).y.sum() <= 8_192  # some are unfinished
    # Not 1 + γ V(s'), which Stable-Baselines3 makes of the reward of a truncated step.
    assert log.signals["reward_max"].y.max() == log.signals["reward_min"].y.min() == 1.0
    found = diagnose(log)
    assert "ENV-NOEND" in {one.check.id for one in found.fine}
    assert {"PV-ADV-WRONG", "PV-TARGET-WRONG"} <= {one.check.id for one in found.fine}
    assert ("PI-RATIO1" in [one.check.id for one in found.findings]) == broken
    assert ("PI-RATIO1" in [one.check.id for one in found.fine]) != broken


@needs_peer
@pytest.mark.slow
def test_the_callback_sees_the_replay(tmp_path: Path) -> None:
    with_sb3(DQN, tmp_path / "doctor.csv")
    (log,) = logs_in(tmp_path / "doctor.csv", {})
    assert (log.algorithm, log.env, log.planned) == ("dqn", "CartPole-v1", 12_000)
    assert list(log.signals["q_mean"].x) == [500.0 * n for n in range(1, 25)]
    assert log.has("q_mean", "target_mean", "td_error_abs_mean", "epsilon", "reward_min")
    assert log.has("obs_abs_mean", "obs_std_min", "obs_std_max")
    assert {"Q-BOUND", "Q-TARGET-STILL"} <= {one.check.id for one in diagnose(log).fine}


@needs_peer
@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize(("algorithm", "check"), [("ppo", "ENV-ACTIONS"), ("dqn", "Q-REPLAY-OBS")])
def test_the_callback_sees_the_ways_of_actions_and_observations(
    tmp_path: Path, algorithm: str, check: str, broken: bool
) -> None:
    with_sb3(PATHS.format(broken=broken), tmp_path / "doctor.csv", algorithm)
    (log,) = logs_in(tmp_path / "doctor.csv", {})
    found = diagnose(log)
    assert (check in {one.check.id for one in found.findings}) == broken
    assert (check in {one.check.id for one in found.fine}) != broken


@needs_peer
@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_callback_sees_a_subclass_as_its_update_does(tmp_path: Path, dropout: float) -> None:
    with_sb3(SUBCLASS.format(dropout=dropout), tmp_path / "doctor.csv")
    (log,) = logs_in(tmp_path / "doctor.csv", {})
    assert np.all(np.diff(log.signals["seconds"].y) > 0), "of both calls"
    assert (log.algorithm, log.planned) == ("ppo", 4_096)
    assert list(log.signals["first_ratio_error"].x) == [256.0 * n for n in range(1, 17)]
    assert len(log.signals["evaluation_return"].y) >= 7, "one of every 500 env steps"
    assert log.has("episode_length_min", "episode_length_max")
    found = {one.check.id for one in diagnose(log).findings}
    assert ("PI-RATIO1" in found) == (dropout > 0)


@needs_peer
@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3])
def test_the_callback_reads_a_replay_as_it_is_learned_from(tmp_path: Path, n: int) -> None:
    with_sb3(NORMALISED.format(n=n), tmp_path / "doctor.csv")
    (log,) = logs_in(tmp_path / "doctor.csv", {})
    assert "rollout_length" not in log.settings
    assert log.signals["reward_min"].y.min() >= -10.0, "clipped when normalised"
    assert log.signals["td_error_abs_mean"].y.max() < 10.0
    assert log.signals["obs_std_max"].y.max() < 3.0
    # The loss is half of the squared errors of two critics, before the same minibatch is learned.
    size = together(
        log.signals["td_error_abs_mean"], log.signals["q_loss"], lambda e, q: e / q**0.5
    )
    assert np.nanmedian(size.y) < 1.5


@needs_peer
@pytest.mark.slow
def test_the_callback_changes_no_bit_of_what_is_learned(tmp_path: Path) -> None:
    said = with_sb3(SAME.format(path=tmp_path / "doctor.csv"))
    assert said.split() == ["True", "True"]


@needs_peer
@pytest.mark.slow
def test_stable_baselines_passes_the_probes() -> None:
    assert with_sb3(PROBE).strip() == "[]"


@needs_peer
@pytest.mark.medium
def test_an_environment_keeps_its_name_if_its_logged_returns_do() -> None:
    """Rewards scaled outside of the Monitor are not those that it logs; inside, they are."""
    assert with_sb3(WRAPPED).split() == ["CartPole-v1", "CartPole-v1", "None", "None"]
