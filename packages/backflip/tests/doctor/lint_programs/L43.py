# L43: an episode begins with an old observation

# %% mistake
def run(env, agent, steps):
    obs, info = env.reset()
    for step in range(steps):
        action = agent.act(obs)
        next_obs, reward, terminated, truncated, info = env.step(action)
        agent.learn(obs, action, reward, next_obs, terminated)
        obs = next_obs
        if terminated or truncated:
            env.reset()  # here

# %% right
def run(env, agent, steps):
    obs, info = env.reset()
    for step in range(steps):
        obs, reward, terminated, truncated, info = env.step(agent.act(obs))
        if terminated or truncated:
            obs, info = env.reset()
def random(env, steps):
    env.reset()
    for step in range(steps):
        obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
def one(env, agent):
    obs, info = env.reset()
    while True:
        obs, reward, terminated, truncated, info = env.step(agent.act(obs))
        if terminated or truncated:
            env.reset()
            break
