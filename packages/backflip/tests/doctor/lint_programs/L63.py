# L63: the axis is that of the batch

# %% mistake
import torch
def conservative(q, actions):
    of_data = q.gather(1, actions.unsqueeze(1)).squeeze(1)
    return torch.logsumexp(q, dim=0).mean() - of_data.mean()  # here

# %% right
import torch
def conservative(q, actions, ensemble):
    of_data = q.gather(1, actions.unsqueeze(1)).squeeze(1)
    return torch.logsumexp(q, dim=1).mean() - of_data.mean(), ensemble.softmax(dim=0)
