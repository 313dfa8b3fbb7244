# L44: the ratio is of the policy with itself

# %% mistake
import torch
def update(policy, optimizer, obs, actions, advantages, clip):
    for epoch in range(10):
        dist = policy(obs)
        log_prob = dist.log_prob(actions)
        old = dist.log_prob(actions).detach()
        ratio = torch.exp(log_prob - old)  # here
        clipped = torch.clamp(ratio, 1 - clip, 1 + clip)
        loss = -torch.min(ratio * advantages, clipped * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# %% mistake
import torch
def update(policy, x, u, advantages, passes):
    for _ in range(passes):
        pi = policy.dist(x)
        with torch.no_grad():
            before = policy.dist(x).log_prob(u)
        ratio = torch.exp(pi.log_prob(u) - before)  # here
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        yield -surrogate.mean()

# %% right
import torch
def update(policy, obs, actions, advantages, old, clip):
    log_prob = policy(obs).log_prob(actions)
    ratio = torch.exp(log_prob - old)
    clipped = torch.clamp(ratio, 1 - clip, 1 + clip)
    return -torch.min(ratio * advantages, clipped * advantages).mean()
def first(policy, old_policy, obs, actions, clip):
    log_prob = policy(obs).log_prob(actions)
    old = old_policy(obs).log_prob(actions).detach()
    return torch.clamp(torch.exp(log_prob - old), 1 - clip, 1 + clip)

# %% right
import torch
def surrogate(dist, actions, advantages):
    log_prob = dist.log_prob(actions)
    fixed = dist.log_prob(actions).detach()
    return -(torch.exp(log_prob - fixed) * advantages).mean()

# %% right
import torch
def update(policy, x, u, advantages, passes):
    with torch.no_grad():
        before = policy.dist(x).log_prob(u)
    for _ in range(passes):
        pi = policy.dist(x)
        ratio = torch.exp(pi.log_prob(u) - before[:])
        surrogate = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        yield -surrogate.mean()
