# L62: the action is chosen once for many steps

# %% mistake
def sarsa(env, q, choose, alpha, gamma):
    for episode in range(500):
        s, _ = env.reset()
        a = choose(q, s)
        over = False
        while not over:
            s2, r, terminated, truncated, _ = env.step(a)  # here
            a2 = choose(q, s2)
            q[s, a] += alpha * (r + gamma * q[s2, a2] * (1 - terminated) - q[s, a])
            s = s2
            over = terminated or truncated

# %% right
def sarsa(env, q, choose, alpha, gamma):
    for episode in range(500):
        s, _ = env.reset()
        a = choose(q, s)
        over = False
        while not over:
            s2, r, terminated, truncated, _ = env.step(a)
            a2 = choose(q, s2)
            q[s, a] += alpha * (r + gamma * q[s2, a2] * (1 - terminated) - q[s, a])
            s, a = s2, a2
            over = terminated or truncated
def repeated(env, action):
    for _ in range(4):
        obs, reward, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    return obs
def skipped(env, choose, obs):
    for t in range(100):
        a = choose(obs)
        for _ in range(4):
            next_obs, reward, terminated, truncated, _ = env.step(a)
        obs = next_obs
