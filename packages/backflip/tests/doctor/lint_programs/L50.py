# L50: the target is the number of an action

# %% mistake
def target(q, reward, next_obs, terminated, gamma):
    return (reward + gamma * (1 - terminated) * q(next_obs).max(1)[1]).detach()  # here

# %% mistake
def target(q, reward, next_obs, terminated, gamma):
    y = reward + gamma * q(next_obs).argmax(1) * (1 - terminated)  # here
    return y.detach()

# %% right
def target(q, reward, next_obs, terminated, gamma):
    return (reward + gamma * (1 - terminated) * q(next_obs).max(1)[0]).detach()
def table(q, reward, after, gamma):
    return reward + gamma * q[after, q[after].argmax()]
