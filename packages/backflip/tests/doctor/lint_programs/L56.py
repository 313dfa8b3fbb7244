# L56: one network chooses the action and judges it

# %% mistake
class DoubleDQN:
    def target(self, reward, next_obs, terminated):
        best = self.target_net(next_obs).argmax(dim=1, keepdim=True)
        value = self.target_net(next_obs).gather(1, best).squeeze(1)  # here
        return reward + self.gamma * (1 - terminated) * value

# %% mistake
def ddqn_values(target, s2):
    q = target(s2)
    best = target(s2).max(1)[1]
    return q.gather(1, best.unsqueeze(1))  # here

# %% right
class DoubleDQN:
    def target(self, reward, next_obs, terminated):
        best = self.online(next_obs).argmax(dim=1, keepdim=True)
        value = self.target_net(next_obs).gather(1, best).squeeze(1)
        return reward + self.gamma * (1 - terminated) * value
