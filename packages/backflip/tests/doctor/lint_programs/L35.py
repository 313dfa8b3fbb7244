# L35: weights are copied the wrong way, or too often

# %% mistake
def train(env, online_net, target_net, agent):
    step = 0
    obs, _ = env.reset()
    while step < 1000:
        obs, *_ = env.step(agent.act(obs))
        step += 1
        if step % 500 == 0:
            online_net.load_state_dict(target_net.state_dict())  # here

# %% mistake
SYNC = 1
def train(env, model, target_model, agent):
    obs, _ = env.reset()
    for step in range(1000):
        obs, *_ = env.step(agent.act(obs))
        if step % SYNC == 0:
            target_model.set_weights(model.get_weights())  # here

# %% mistake
class Net:
    def copy_weights(self, other):
        for mine, theirs in zip(self.model.variables, other.model.variables):
            mine.assign(theirs.numpy())
def play(env, train_net, target_net, period):
    step, done = 0, False
    while not done:
        obs, reward, done, *_ = env.step(train_net.act())
        step += 1
        if step % period == 0:
            target_net.copy_weights(train_net)  # here
def main(env):
    period = 2
    play(env, Net(), Net(), period)

# %% mistake
class Net:
    def copy_weights(self, other):
        for mine, theirs in zip(self.net.parameters(), other.net.parameters()):
            mine.data.copy_(theirs.data)
def update(steps, train_net, target_net):
    if steps % 1000 == 0:
        train_net.copy_weights(target_net)  # here

# %% right
def train(env, net, target_net, agent):
    for step in range(1000):
        env.step(agent.act())
        if step % 500 == 0:
            target_net.load_state_dict(net.state_dict())
def finish(net, target_net):
    net.load_state_dict(target_net.state_dict())

# %% right
def train(env, online_net, target_net, agent):
    target_net.load_state_dict(online_net.state_dict())
    obs, _ = env.reset()
    for step in range(1000):
        obs, *_ = env.step(agent.act(obs))
        if step % 500 == 0:
            target_net.load_state_dict(online_net.state_dict())
    for episode in range(10):
        if episode % 2 == 0:
            target_net.load_state_dict(online_net.state_dict())
def mixed(env, online_net, target_net, agent, total_it, tau):
    while True:
        env.step(agent.act())
        if total_it % 2 == 0:
            for p, q in zip(online_net.parameters(), target_net.parameters()):
                q.data.copy_(tau * p.data + (1 - tau) * q.data)
class Agent:
    def __init__(self, q_net, target_net):
        q_net.load_state_dict(target_net.state_dict())
    def load(self, path):
        self.net.load_state_dict(self.read(path))
def updates(env, agent, net, target_net):
    for step in range(1000):
        env.step(agent.act())
        for update in range(4):
            for n in range(10):
                if n % 2 == 0:
                    target_net.load_state_dict(net.state_dict())
