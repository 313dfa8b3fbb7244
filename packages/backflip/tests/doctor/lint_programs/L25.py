# L25: ends of episodes are ignored

# %% mistake
import torch
def update(net, target_net, batch, gamma):
    s, a, r, s2, done = batch
    done = torch.as_tensor(done, dtype=torch.float32)
    y = r + gamma * target_net(s2).max(1)[0]  # here
    return (net(s, a) - y).pow(2).mean()

# %% mistake
def update(target_net, net, batch):
    s, a, r, s2, done = batch
    y = r + 0.99 * target_net(s2)  # here
    return (net(s, a) - y).pow(2).mean()

# %% mistake
def run(env, agent, memory, gamma):
    state = env.reset()
    while True:
        action = agent.act(state)
        next_state, reward, done, _ = env.step(action)
        memory.append([state, action, reward, next_state])  # here
        state = next_state
        if done:
            break
def learn(reward, next_q, gamma):
    y = reward + gamma * next_q.max()
    return y

# %% mistake
def advantages(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] - values[t]  # here
        last = delta + gamma * lam * last
        found.append(last)
    return found[::-1]

# %% mistake
def loss(batch, q, target_q, gamma):
    s, a, r, s2, d = batch
    y = (r + gamma * target_q(s2).max(1).values).detach()  # here
    return ((q(s) - y) ** 2).mean()

# %% mistake
def target(reward, next_obs, terminated, critic, discount):
    following = critic(next_obs)
    return reward + discount * following  # here

# %% right
def run(env, agent, memory, gamma):
    state = env.reset()
    while True:
        action = agent.act(state)
        next_state, reward, done, _ = env.step(action)
        if done:
            next_state = None
        memory.append([state, action, reward, next_state])
        state = next_state
        if done:
            break
def kept(env, agent, memory, ends):
    next_state, reward, done, _ = env.step(0)
    memory.push(0, 0, reward, next_state)
    ends.append(done)
def learn(reward, next_q, gamma):
    y = reward + gamma * next_q.max()
    return y

# %% right
def advantages(rewards, values, dones, gamma, lam):
    last, found = 0.0, []
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + gamma * lam * (1 - dones[t]) * last
        found.append(last)
    return found[::-1]

# %% right
def target(batch, q, gamma):
    s, a, r, s2, done = batch
    return r + gamma * batch.masks * q(s2).max(1).values

# %% right
def target(batch, q, discounts):
    s, a, r, s2, done = batch
    return r + discounts * q(s2).max(1).values

# %% right
def forecast(batch, world, gamma):
    s, a, r, s2, done = batch
    loss = ((world(s, a) - s2) ** 2).mean()
    return loss + gamma * r.mean()

# %% right
def target(reward, next_obs, terminated, critic, discount):
    def following():
        return 0.0 if terminated else critic(next_obs)
    return reward + discount * following()
