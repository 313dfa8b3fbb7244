# L23: errors of training are hidden

# %% mistake
from ray.rllib.algorithms.sac import SACConfig

def one_turn(wizard):
    return wizard.train()["env_runners"]

wizard = SACConfig().environment("Pendulum-v1").build()
failed = 0
while wizard.iteration < 100:
    try:
        print(one_turn(wizard))
    except Exception as problem:  # here
        failed += 1
        print("goes on after", problem)

# %% mistake
for step in range(10):
    try:
        agent.update(batch)
    except Exception:  # here
        pass
    try:
        obs, reward, terminated, truncated, info = envs.step(actions)
    except:  # here
        continue

# %% mistake
def train(model):
    last = None
    try:
        model.learn(1000)
    except Exception as error:  # here
        last = error
    print(last)
    while True:
        try:
            model.learn(1000)
        except Exception:  # here
            break

# %% mistake
for step in range(10):
    try:
        model.learn(1000)
    except Exception as error:  # here
        print(error)

# %% mistake
try:
    loss.backward()
except:  # here
    pass

# %% mistake
import contextlib
with contextlib.suppress(Exception):  # here
    model.learn(10_000)

# %% mistake
import logging
class Trainer:
    def improve(self, batch):
        loss = self.net(batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
    def run(self, batches):
        for batch in batches:
            try:
                self.improve(batch)
            except Exception as error:  # here
                logging.warning("no update: %s", error)

# %% right
from ray.rllib.algorithms.sac import SACConfig

for rate in (1e-4, 1e-3):
    wizard = SACConfig().training(actor_lr=rate).build()
    try:
        print(wizard.train()["env_runners"])
    except Exception as problem:
        print(rate, "does not run:", problem)

failed = 0
while wizard.iteration < 100:
    try:
        print(wizard.train())
    except Exception as problem:
        print(problem)
        wizard.restore("last")

# %% right
for step in range(10):
    try:
        agent.learn()
    except Exception:
        agent.save("crashed")
        break

# %% right
def train(model, errors, results):
    stopped = None
    try:
        model.learn(1000)
    except Exception as error:
        stopped = error
    try:
        model.learn(1000)
    except Exception as error:
        errors.append(error)
    try:
        model.learn(1000)
    except Exception as error:
        results.put(error)
    if stopped or errors:
        raise stopped or ExceptionGroup("training", errors)

# %% right
try:
    progress.update(1)
    env.step(action)
except Exception:
    env = make()
try:
    progress.update(1)
except Exception:
    pass

# %% right
try:
    model.learn(1000)
except KeyboardInterrupt:
    pass
except Exception:
    model.save("crashed")
    raise
try:
    import wandb
except Exception:
    wandb = None

# %% right
import contextlib
with contextlib.suppress(KeyboardInterrupt):
    model.learn(10_000)
with contextlib.suppress(Exception):
    writer.close()

# %% right
import logging
class Trainer:
    def improve(self, batch):
        loss = self.net(batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
    def run(self, batches):
        for batch in batches:
            try:
                self.improve(batch)
            except torch.cuda.OutOfMemoryError as error:
                logging.warning("no update: %s", error)

# %% right
import logging
import gymnasium as gym
def train(seed):
    env = gym.make("CartPole-v1")
    for loss in losses(env, seed):
        loss.backward()
for seed in range(10):
    try:
        train(seed)
    except Exception:
        logging.exception("seed %d failed", seed)
