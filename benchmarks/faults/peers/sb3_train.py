"""Train one run of Stable-Baselines3 by its name, a seed after the other, into a folder.

    python benchmarks/faults/peers/sb3_train.py NAME FOLDER [--share 0.1] [--seeds 3]

Each seed gets a folder with the library's own `progress.csv`, another with the files of its
Monitors beside it, and the callback's `doctor.csv`. `returns.json` gets the mean true return of the
episodes that ended in the last fifth of the budget. Runs in `.cache/peers/sb3/bin/python`, with the
sources of backflip on PYTHONPATH. `collect_peers.py` calls this.
"""

import argparse
import importlib
import json
import math
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from sb3_breaks import BREAKS, Break
from sb3_faults import Fault, Training, find, seeds_of

from backflip.doctor.sb3 import BaseCallback, DoctorCallback, torch

# Not among our packages, so that type checkers do not know it.
sb3: Any = importlib.import_module("stable_baselines3")
common: Any = importlib.import_module("stable_baselines3.common.env_util")
logger: Any = importlib.import_module("stable_baselines3.common.logger")
noise: Any = importlib.import_module("stable_baselines3.common.noise")

KINDS = ("seed", "monitored")  # folders: the library's own file, and the same beside its Monitors
LAST = 0.8  # of the budget: where the episodes begin to count


class Returns(BaseCallback):
    """The true returns of episodes, with the env steps at which they ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = list[tuple[int, float]]()

    def _on_step(self) -> bool:
        infos: Any = self.locals["infos"]
        for info in infos:
            if "episode" in info:
                self.ended.append((self.num_timesteps, float(info["episode"]["r"])))
        return True

    def late(self, env_steps: int) -> float:
        """Return the mean return after `LAST` of the budget, or that of the last episode."""
        late = [one for at, one in self.ended if at >= LAST * env_steps]
        return float(np.mean(late or [one for _, one in self.ended[-1:]] or [math.nan]))


def build(fault: Fault | None, of: Training, seed: int, monitors: Path) -> Any:
    """Return the algorithm, with the fault in it; its Monitors write into a folder."""
    change = BREAKS[fault.breaks] if fault and fault.breaks else Break()
    more = {"seed": seed, "wrapper_class": change.env, "monitor_dir": str(monitors)}
    env = common.make_vec_env(of.env, of.num_envs, **more)
    env = change.vec_env(env) if change.vec_env else env
    # Stable-Baselines3 writes into `policy_kwargs`: each model needs a copy.
    settings = deepcopy({**of.settings, **(fault.settings if fault else {}), **change.settings})
    deviation = settings.pop("noise_std", 0.0)
    if deviation:
        size = env.action_space.shape
        settings["action_noise"] = noise.NormalActionNoise(
            np.zeros(size), deviation * np.ones(size)
        )
    kind = getattr(sb3, of.algorithm)
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **settings)
    if change.model:
        change.model(model)
    return model


def train(fault: Fault | None, of: Training, seed: int, folder: Path, share: float) -> float:
    """Train one seed, and return its late return; NaN if numbers stopped being finite."""
    env_steps = int(share * of.env_steps)
    own, monitored = (folder / f"{kind}_{seed}" / f"{of.algorithm}_1" for kind in KINDS)
    model, returns = build(fault, of, seed, monitored), Returns()
    model.set_logger(logger.configure(str(own), ["csv"]))
    doctor = DoctorCallback(folder / f"doctor_{seed}.csv", every=of.every)
    try:
        model.learn(env_steps, callback=[returns, doctor], log_interval=of.log_interval)
    except ValueError as error:  # PyTorch refuses a distribution whose parameters are NaN
        if "invalid values" not in str(error):
            raise
        return math.nan
    finally:
        model.env.close()  # the Monitors write the rest of their lines
        shutil.copy(own / "progress.csv", monitored)
    return returns.late(env_steps)


def main() -> None:
    """Train all seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, default=1.0, help="of the budget")
    parser.add_argument("--seeds", type=int, help="only so many")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    fault, of = find(arguments.name)
    seeds = seeds_of(arguments.name)[: arguments.seeds]
    returns = [train(fault, of, seed, arguments.folder, arguments.share) for seed in seeds]
    (arguments.folder / "returns.json").write_text(json.dumps(returns), encoding="utf-8")


if __name__ == "__main__":
    main()
