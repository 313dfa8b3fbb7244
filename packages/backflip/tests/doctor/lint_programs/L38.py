# L38: the ratio is upside down

# %% mistake
import torch
def loss(policy, batch, advantages):
    log_probs = policy(batch.obs).log_prob(batch.actions)
    ratio = torch.exp(batch.old_log_probs - log_probs)  # here
    other_ratio = (batch.old_logp - log_probs).exp()  # here
    return ratio, other_ratio

# %% right
import torch
def loss(policy, batch, advantages, reference_log_probs):
    log_probs = policy(batch.obs).log_prob(batch.actions)
    ratio = torch.exp(log_probs - batch.old_log_probs)
    kl = torch.exp(batch.old_log_probs - log_probs) - 1 + log_probs - batch.old_log_probs
    ratio_of_lengths = torch.exp(batch.old_length - batch.length)
    neglog_ratio = torch.exp(batch.old_neglog_probs - batch.neglog_probs)
    return ratio, kl, ratio_of_lengths
