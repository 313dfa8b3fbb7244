"""PPO from pictures in PyTorch, in the form CleanRL made usual: env steps per second.

The Nature network, a rollout of T env steps of N games of ale-py's vector environment, advantages,
E epochs of M minibatches. The first `--skip` iterations are not counted. Prints one JSON line.
Runs in the peer's environment: `.cache/peers/torch/bin/python`.
"""

import argparse
import json
import time

import numpy as np
import torch
from ale_py.vector_env import AtariVectorEnv
from torch import nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--game", default="pong")
parser.add_argument("--num-envs", type=int, default=8)
parser.add_argument("--rollout-length", type=int, default=128)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--minibatches", type=int, default=4)
parser.add_argument("--iterations", type=int, default=8)
parser.add_argument("--skip", type=int, default=1)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
torch.set_num_threads(arguments.threads)
torch.manual_seed(arguments.seed)
count, length = arguments.num_envs, arguments.rollout_length
GAMMA, LAMBDA, CLIP, ENTROPY, VALUE, NORM, RATE = 0.99, 0.95, 0.1, 0.01, 0.5, 0.5, 2.5e-4


def orthogonal(layer, gain=2**0.5):
    """The layer with orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Network(nn.Module):
    """Three convolutions and 512 units under a policy head and a value head."""

    def __init__(self, actions):
        super().__init__()
        self.body = nn.Sequential(
            orthogonal(nn.Conv2d(4, 32, 8, 4)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(32, 64, 4, 2)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(64, 64, 3)),
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(3136, 512)),
            nn.ReLU(),
        )
        self.policy = orthogonal(nn.Linear(512, actions), 0.01)
        self.value = orthogonal(nn.Linear(512, 1), 1.0)

    def forward(self, obs):
        """Logits (B, A) and values (B,) of pictures (B, 4, 84, 84) of bytes."""
        x = self.body(obs.float() / 255.0)
        return self.policy(x), self.value(x).squeeze(-1)


env = AtariVectorEnv(
    arguments.game, count, num_threads=arguments.threads, repeat_action_probability=0.25
)
network = Network(int(env.single_action_space.n))
optimizer = torch.optim.Adam(network.parameters(), RATE, eps=1e-5)
seen = torch.from_numpy(np.array(env.reset(seed=arguments.seed)[0]))
ended = torch.zeros(count)


def rollout():
    """T env steps: what was seen and done, its log-probability, reward, value, and the ends."""
    global seen, ended
    rows = []
    for _ in range(length):
        with torch.no_grad():
            logits, value = network(seen)
            policy = Categorical(logits=logits)
            action = policy.sample()
            log_prob = policy.log_prob(action)
        obs, reward, terminated, truncated, _ = env.step(action.numpy())
        paid = torch.as_tensor(reward, dtype=torch.float32)
        rows.append((seen, action, log_prob, paid, value, ended))
        seen = torch.from_numpy(np.array(obs))
        either = terminated | truncated  # rl: ignore[L01] as CleanRL: a game is never cut here
        ended = torch.as_tensor(either, dtype=torch.float32)
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def advantages(reward, value, began):
    """Generalised advantages; `began` says that an episode had ended before the step."""
    with torch.no_grad():
        following, alive = network(seen)[1], 1.0 - ended
        found, running = torch.zeros_like(reward), torch.zeros(count)
        for t in reversed(range(length)):
            error = reward[t] + GAMMA * following * alive - value[t]
            running = error + GAMMA * LAMBDA * alive * running
            found[t], following, alive = running, value[t], 1.0 - began[t]
    return found


def learn(obs, action, old_log_prob, advantage, target, old_value):
    """One gradient step on a minibatch: clipped surrogate, clipped value error, entropy."""
    logits, value = network(obs)
    policy = Categorical(logits=logits)
    ratio = (policy.log_prob(action) - old_log_prob).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    kept = ratio.clamp(1 - CLIP, 1 + CLIP)
    surrogate = torch.minimum(ratio * advantage, kept * advantage).mean()
    near = old_value + (value - old_value).clamp(-CLIP, CLIP)
    error = torch.maximum((value - target).square(), (near - target).square()).mean() / 2
    optimizer.zero_grad()
    (VALUE * error - surrogate - ENTROPY * policy.entropy().mean()).backward()
    nn.utils.clip_grad_norm_(network.parameters(), NORM)
    optimizer.step()


def iteration():
    """Collect a rollout and learn from it."""
    obs, action, log_prob, reward, value, began = rollout()
    advantage = advantages(reward, value, began)
    columns = (obs, action, log_prob, advantage, advantage + value, value)
    flat = [column.flatten(0, 1) for column in columns]
    for _ in range(arguments.epochs):
        for chosen in torch.randperm(count * length).chunk(arguments.minibatches):
            learn(*(column[chosen] for column in flat))


for _ in range(arguments.skip):
    iteration()
start = time.perf_counter()
for _ in range(arguments.iterations):
    iteration()
seconds = time.perf_counter() - start
rate = arguments.iterations * count * length / seconds
print(json.dumps({"seconds": seconds, "env_steps_per_second": rate}))
