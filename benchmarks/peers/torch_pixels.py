"""Forward and backward of a pixel policy network in PyTorch.

Several forms of the same network are timed, and the fastest counts: the patch embedding as a
convolution whose stride is its width, in both memory layouts, and as one matrix product; each with
one thread and with as many as PyTorch chooses.
Prints one JSON line. Runs in the peer's environment: `.cache/peers/torch/bin/python`.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--side", type=int, default=84)
parser.add_argument("--frames", type=int, default=4)
parser.add_argument("--factor", type=int, default=1, help="average over factor x factor first")
parser.add_argument("--patch", type=int, required=True)
parser.add_argument("--channels", type=int, required=True)
parser.add_argument("--hidden", type=int, required=True)
parser.add_argument("--actions", type=int, default=6)
parser.add_argument("--seconds", type=float, default=3.0)
arguments = parser.parse_args()
batch, side, frames, patch = arguments.batch, arguments.side, arguments.frames, arguments.patch
factor = arguments.factor
cells = -(-side // (factor * patch))
padding = cells * patch * factor - side


class Network(nn.Module):
    """Patches, each through one layer; a dense layer; a policy head and a value head."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(frames, arguments.channels, patch, stride=patch)
        self.hidden = nn.Linear(cells * cells * arguments.channels, arguments.hidden)
        self.policy = nn.Linear(arguments.hidden, arguments.actions)
        self.value = nn.Linear(arguments.hidden, 1)

    def by_convolution(self, images):
        """Images (B, frames, side, side), in either memory layout."""
        x = functional.pad(images, (0, padding, 0, padding)).float() / 255.0
        x = functional.avg_pool2d(x, factor) if factor > 1 else x
        return self.heads(torch.relu(self.embed(x)))

    def by_product(self, images):
        """Images (B, side, side, frames)."""
        x = functional.pad(images, (0, 0, 0, padding, 0, padding))
        x = x.reshape(batch, cells * patch, factor, cells * patch, factor, frames)
        corners = [x[:, :, i, :, j].float() for i in range(factor) for j in range(factor)]
        x = sum(corners) / (255.0 * factor**2)
        x = x.reshape(batch, cells, patch, cells, patch * frames).transpose(2, 3)
        x = x.reshape(batch * cells * cells, patch * patch * frames)
        weight = self.embed.weight.permute(0, 2, 3, 1).reshape(arguments.channels, -1)
        return self.heads(torch.relu(functional.linear(x, weight, self.embed.bias)))

    def heads(self, x):
        """Policy and value from what the patches gave."""
        x = torch.relu(self.hidden(x.reshape(batch, -1)))
        return self.policy(x), self.value(x)


network = Network()
channels_first = torch.randint(0, 256, (batch, frames, side, side), dtype=torch.uint8)
channels_last = channels_first.permute(0, 2, 3, 1).contiguous()
forms = {
    "convolution": lambda: network.by_convolution(channels_first),
    "convolution, channels last": lambda: network.by_convolution(channels_last.permute(0, 3, 1, 2)),
    "product": lambda: network.by_product(channels_last),
}


def step(form):
    """One forward and backward pass; the loss is the mean of all squared outputs."""
    network.zero_grad(set_to_none=True)
    policy, value = form()
    (policy.square().mean() + value.square().mean()).backward()


def best_seconds(call, seconds):
    """The least time of one call over about `seconds` of them, after three to warm up."""
    for _ in range(3):
        call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


seconds = {}
for threads in sorted({torch.get_num_threads(), 1}):
    torch.set_num_threads(threads)
    for name, form in forms.items():
        share = arguments.seconds / (2 * len(forms))
        best = best_seconds(lambda form=form: step(form), share)
        seconds[f"{name}, {threads} thread{'s' * (threads > 1)}"] = best
print(json.dumps({"seconds": min(seconds.values()), "forms": seconds}))
