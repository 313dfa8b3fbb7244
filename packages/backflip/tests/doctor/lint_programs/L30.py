# L30: the agent never explores

# %% mistake
import gymnasium as gym
class Agent:
    def get_action(self, obs, epsilon):
        return int(self.q(obs).argmax())  # here

# %% mistake
import random
import numpy as np
class Agent:
    def act(self, state):
        return np.argmax(self.model.predict(state)[0])  # here
    def replay(self, size):
        for state, action, reward, next_state, done in random.sample(self.memory, size):
            target = reward
            if not done:
                target = reward + self.gamma * np.amax(self.model.predict(next_state)[0])
            goal = self.model.predict(state)
            goal[0][action] = target
            self.model.fit(state, goal)
def run(env, agent):
    state, _ = env.reset()
    while True:
        action = agent.act(state)
        next_state, reward, terminated, truncated, _ = env.step(action)
        agent.remember(state, action, reward, next_state, terminated)
        state = next_state
        if terminated or truncated:
            break
    agent.replay(32)

# %% right
class Agent:
    def get_action(self, obs, epsilon):
        if self.explores(epsilon):
            return self.other()
        return int(self.q(obs).argmax())

# %% right
import random
import numpy as np
class Agent:
    def get_action(self, obs, epsilon):
        return int(self.q(obs).argmax()) if random.random() > epsilon else self.any()
    def choose_action(self, obs, eps=0.0):
        noise = np.random.gumbel(size=4)
        return int((self.q(obs) + noise).argmax())
class Base:
    def act(self, obs, epsilon):
        raise NotImplementedError

# %% right
import random
import numpy as np
class Agent:
    def act(self, state):
        return np.argmax(self.noisy_net(state)[0])
    def replay(self, size):
        for state, action, reward, next_state, done in random.sample(self.memory, size):
            target = reward + self.gamma * np.amax(self.model(next_state)) * (1 - done)
            self.model.fit(state, target)
def run(env, agent):
    env.step(agent.act(env.reset()[0]))

# %% right
import numpy as np
def policy(q, obs):
    return int(np.argmax(q[obs]))
def evaluate(env, q):
    env.step(policy(q, 0))
def learn(q, table, gamma, reward, s2, rng):
    q = reward + gamma * np.max(table[s2])
    table.update(q)
    return rng.integers(4)
