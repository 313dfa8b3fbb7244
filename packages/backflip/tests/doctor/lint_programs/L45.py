# L45: returns are made from normalised advantages

# %% mistake
def prepare(advantages, values):
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    returns = advantages + values  # here
    return advantages, returns

# %% mistake
class Buffer:
    def get(self):
        self.adv_buf = (self.adv_buf - self.adv_buf.mean()) / (self.adv_buf.std() + 1e-8)
        self.ret_buf[:] = self.adv_buf + self.val_buf  # here
        return self.ret_buf

# %% right
def prepare(advantages, values):
    returns = advantages + values
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return advantages, returns
def afterwards(advantages, values, kept):
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    advantages = kept
    returns = advantages + values
    return returns
