# L54: the mask of ends is turned round twice

# %% mistake
class Replay:
    def store(self, obs, action, reward, next_obs, terminated):
        mask = 0.0 if terminated else 1.0
        self.data.append((obs, action, reward, next_obs, mask))
def target(replay, critic, gamma):
    obs, action, reward, next_obs, mask = replay.sample(64)
    return reward + gamma * (1 - mask) * critic(next_obs)  # here

# %% mistake
def target(reward, critic, next_obs, not_done, gamma):
    y = reward + gamma * (1.0 - not_done) * critic(next_obs)  # here
    return y

# %% mistake
def collect(masks, terminated, reward, critic, next_obs, gamma):
    masks = 1 - terminated.float()
    reward += gamma * (1 - masks) * critic(next_obs)  # here
    return reward

# %% right
class Replay:
    def store(self, obs, action, reward, next_obs, terminated):
        mask = 0.0 if terminated else 1.0
        self.data.append((obs, action, reward, next_obs, mask))
def target(replay, critic, gamma):
    obs, action, reward, next_obs, mask = replay.sample(64)
    return reward + gamma * mask * critic(next_obs)

# %% right
def other(terminated, reward, critic, next_obs, gamma, action_mask, logits):
    mask = terminated.float()
    hidden = logits - 1e9 * (1 - action_mask)
    return reward + gamma * (1 - mask) * critic(next_obs), hidden
