# L36: the observation is overwritten before it is stored

# %% mistake
def run(env, agent, memory):
    obs, _ = env.reset()
    for _ in range(1000):
        action = agent.act(obs)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        obs = next_obs
        memory.append((obs, action, reward, next_obs, terminated))  # here

# %% mistake
def run(env, agent, buffer, s, s2, r, d, a):
    if agent.ready:
        s = s2
        agent.count += 1
        buffer.add(s, a, r, s2, d)  # here

# %% mistake
def stream(env, choose, here):
    while True:
        move = choose(here)
        there, pay, dead, late, _ = env.step(move)
        here = there
        item = (here, move, pay, there, dead)  # here
        yield item

# %% right
def run(env, agent, memory, frames):
    obs, _ = env.reset()
    for _ in range(1000):
        next_obs, reward, terminated, _, _ = env.step(agent.act(obs))
        memory.append((obs, 0, reward, next_obs, terminated))
        obs = next_obs
        agent.learn(memory)
def turned(env, memory, obs, next_obs, after):
    obs = next_obs
    next_obs = after
    memory.append((obs, 0, 1.0, next_obs, False))
def elsewhere(memory, obs, next_obs, flag):
    if flag:
        obs = next_obs
    memory.append((obs, 0, 1.0, next_obs, False))
def shown(obs, next_obs):
    obs = next_obs
    print(obs, next_obs)
