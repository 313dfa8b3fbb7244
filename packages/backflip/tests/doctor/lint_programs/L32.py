# L32: a minibatch is drawn and not used

# %% mistake
import random
class Agent:
    def replay(self):
        batch = random.sample(self.memory, 32)  # here
        for obs, action, reward, next_obs, terminated in self.memory:
            self.learn(obs, action, reward, next_obs, terminated)

# %% mistake
def update(buffer, agent, data):
    minibatch = buffer.sample(256)  # here
    return agent.update(data)

# %% right
import random
def update(memory, agent):
    batch = random.sample(memory, 32)
    _ = memory.sample(4)
    action = agent.space.sample()
    return [agent.learn(one) for one in batch]
def later(memory):
    batch = memory.sample(32)
    def use():
        return batch
    return use
class Agent:
    def draw(self):
        global minibatch
        minibatch = self.buffer.sample(8)
        self.batch = self.buffer.sample(8)
