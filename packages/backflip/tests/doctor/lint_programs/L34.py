# L34: an episode that never ends

# %% mistake
def play(env, agent):
    obs, _ = env.reset()
    done, total = False, 0.0
    while not done:
        obs, reward, done, _, info = env.step(agent.act(obs))  # here
        total += reward
    return total

# %% mistake
def play(env, agent):
    obs, _ = env.reset()
    done, total = False, 0.0
    while not done:  # here
        action = agent.act(obs)
        agent.remember(obs, action, done)
        for _ in range(3):
            if agent.update():
                break
    return total

# %% mistake
def play(env, agent):
    obs, _ = env.reset()
    terminated = truncated = False
    while not (terminated or truncated):  # here
        obs, reward, ended, cut, _ = env.step(agent.act(obs))

# %% right
class Corridor:
    def step(self, action):
        self.place += 1
        return self.place, 0.0, self.place > 3, False, {}
def walk(agent):
    env = Corridor()
    done = False
    while not done:
        obs, reward, done, _, info = env.step(agent.act())
def cut(env, agent, limit):
    done, steps = False, 0
    while not done:
        obs, reward, done, _, info = env.step(agent.act())
        steps += 1
        if steps == limit:
            break
def both(env, agent):
    terminated = truncated = False
    while not terminated and not truncated:
        obs, reward, terminated, truncated, _ = env.step(agent.act())
def limited(env, agent, limit):
    done, steps = False, 0
    while not done:
        obs, reward, dead, _, info = env.step(agent.act())
        steps += 1
        done = dead or steps == limit
def counted(env, agent, cost):
    done = False
    while not done:
        obs, reward, cost, done, _ = env.step(agent.act())

# %% right
def play(env, agent):
    terminal = False
    while not terminal:
        if agent.is_tired():
            break

# %% right
def play(env, agent, shared):
    obs, _ = env.reset()
    done = False
    while not done:
        obs, reward, done, *_ = env.step(agent.act(obs))
    ended = False
    while not ended:
        if agent.is_tired():
            break
    terminated = False
    while not terminated:
        terminated |= agent.tick()
    truncated = False
    while not truncated:
        return obs
    while not shared.done:
        agent.wait()
    over = agent.is_over()
    while not over:
        over = agent.is_over()
def wait(done):
    while not done:
        pass
def collect(env):
    finished = False
    def stop():
        nonlocal finished
        finished = True
    while not finished:
        env.step(stop)
