# L68: a callback ends training

# %% mistake
from stable_baselines3.common.callbacks import BaseCallback
class Log(BaseCallback):
    def _on_step(self):  # here
        self.logger.record("x", self.num_timesteps)

# %% mistake
from stable_baselines3.common import callbacks
class Log(callbacks.BaseCallback):
    def _on_step(self) -> None:  # here
        if self.n_calls % 100:
            return
        self.logger.record("x", self.num_timesteps)

# %% right
from stable_baselines3.common.callbacks import BaseCallback
class Log(BaseCallback):
    def _on_step(self) -> bool:
        if self.n_calls % 100:
            return True
        self.logger.record("x", self.num_timesteps)
        return True
class Stops(BaseCallback):
    def _on_step(self):
        return self.num_timesteps < 1000
class Later(BaseCallback):
    def _on_step(self):
        raise NotImplementedError
class Other:
    def _on_step(self):
        self.n = 1
