# L02: keys of vector environments before Gymnasium 1.0

# %% mistake
import gymnasium as gym
def log(infos, write):
    for info in infos["final_info"]:  # here
        if info and "episode" in info:
            write(info["episode"]["r"])

# %% mistake
import gymnasium as gym
if "final_info" in infos:  # here
    for info in infos["final_info"]:
        print(info["episode"])

# %% mistake
import gymnasium
last = infos["final_observation"][0]  # here

# %% mistake
import gymnasium as gym
class Collector:
    def last(self, infos, i):
        key = "final_observation"  # here
        return infos[key][i]

# %% mistake
import gymnasium as gym
from gymnasium.vector import AutoresetMode
envs = gym.make_vec("CartPole-v1", 4, vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
def last_of(infos, i):
    return infos["final_observation"][i]  # here

# %% mistake
import gymnasium as gym
assert int(gym.__version__.split(".")[0]) >= 1
print(gym.__version__)
class Log:
    def feed(self, write, infos):
        for one in infos.get("final_info", []):  # here
            write(one["episode"]["r"])

# %% mistake
import gymnasium
from packaging.version import parse
if parse(gymnasium.__version__) < parse("1.0"):
    raise RuntimeError("too old")
last = infos["final_observation"][0]  # here

# %% right
import gymnasium as gym
def log(infos, write):
    if "final_info" in infos:
        for info in infos["final_info"]:
            if info and "episode" in info:
                write(info["episode"]["r"])
    elif "episode" in infos:
        write(infos["episode"]["r"])
    return infos.get("final_obs", infos.get("final_observation"))

# %% right
import gymnasium as gym
old = gym.__version__.startswith("0.")
last = infos["final_info"] if old else infos["episode"]

# %% right
import gymnasium
from gymnasium.vector import AutoresetMode
envs = gymnasium.make_vec("CartPole-v1", vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
last = infos["final_info"]

# %% right
# no environment here
keys = ["final_info"]

# %% right
import gymnasium as gym
from mine import names
key = "final_observation"
names.append(key)

# %% right
import gymnasium as gym
from gymnasium.vector import AutoresetMode
envs = gym.make_vec("CartPole-v1", 4, vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
def last_of(infos, i):
    return infos["final_obs"][i]

# %% right
import gymnasium as gym
assert gym.__version__ < "1"
last = infos["final_info"]

# %% right
import gymnasium as gym
if gym.__version__ >= "1":
    last = infos["_episode"]
else:
    last = infos["final_observation"]
