# L26: the loss has the wrong sign

# %% mistake
import torch
def update(dist, log_probs, actions, returns, value_loss):
    entropies = []
    for one in dist:
        entropies.append(one.entropy())
    policy_loss = -(log_probs * returns).mean()
    loss = policy_loss + value_loss + 0.01 * torch.stack(entropies).mean()  # here
    return loss

# %% mistake
def alpha_loss(log_alpha, log_prob, target_entropy):
    return (log_alpha * (log_prob + target_entropy)).mean()  # here

# %% mistake
import torch
def target(q1, q2, next_log_prob, alpha, reward, terminated, gamma):
    q = torch.min(q1, q2) + alpha * next_log_prob  # here
    return reward + gamma * (1 - terminated) * q

# %% mistake
def actor_loss(critic, actor, obs):
    action = actor(obs)
    return critic(obs, action).mean()  # here
def other(critic, actor, obs):
    policy_loss = critic(obs, actor(obs)).mean()  # here
    return policy_loss

# %% mistake
def loss(log_alpha, log_prob, target_entropy):
    alpha_loss = (log_alpha * (log_prob + target_entropy).detach()).mean()  # here
    return alpha_loss

# %% mistake
import torch
def loss(ratio, advantages, clip):
    surr1 = ratio * advantages
    surr2 = torch.clamp(ratio, 1 - clip, 1 + clip) * advantages
    policy_loss = -torch.max(surr1, surr2).mean()  # here
    return policy_loss

# %% mistake
def update(dist, actions, advantages, optimizer):
    log_prob = dist.log_prob(actions)
    policy_loss = (log_prob * advantages).mean()  # here
    policy_loss.backward()

# %% mistake
import torch
def update(logp, old, adv, clip):
    ratio = (logp - old).exp()
    surr1 = ratio * adv
    surr2 = torch.clamp(ratio, 1 - clip, 1 + clip) * adv
    loss_pi = torch.min(surr1, surr2).mean()  # here
    return loss_pi

# %% mistake
def update(dist, actions, advantages, optimizer):
    losses = 0.0
    losses += (dist.log_prob(actions) * advantages.detach()).sum()  # here
    return losses

# %% mistake
def update(policy_loss, value_loss, dist, coef):
    entropy = dist.entropy().mean()
    loss = policy_loss + 0.5 * value_loss + coef * entropy  # here
    loss.backward()

# %% mistake
def update(pg_loss, v_loss, entropy, args):
    entropy_loss = entropy.mean()
    loss = pg_loss - args.ent_coef * -entropy_loss + v_loss  # here
    return loss

# %% mistake
import torch
def update(ratio, advantages, clip):
    first = -advantages * ratio
    second = -advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    pg_loss = torch.min(first, second).mean()  # here
    return pg_loss

# %% mistake
import torch
def target(q1, q2, next_obs, action, alpha, next_log_prob, reward, gamma, terminated):
    next_q = torch.min(q1(next_obs, action), q2(next_obs, action))
    backup = reward + gamma * (1 - terminated) * (next_q + alpha * next_log_prob)  # here
    return backup

# %% right
import torch
def update(dist, log_probs, returns, value_loss):
    entropies, losses = [], []
    for one in dist:
        entropies.append(one.entropy())
        losses.append(-one.entropy())
    policy_loss = -(log_probs * returns).mean()
    loss = policy_loss + value_loss - 0.01 * torch.stack(entropies).mean()
    loss = policy_loss + 0.01 * torch.stack(losses).mean()
    return loss

# %% right
def alpha_loss(log_alpha, log_prob, target_entropy):
    return -(log_alpha * (log_prob + target_entropy)).mean()
def temperature_loss(log_alpha, log_prob, target_entropy):
    return (log_alpha * (log_prob + target_entropy)).mean()
def update(log_alpha, log_prob, target_entropy):
    return -temperature_loss(log_alpha, log_prob, target_entropy)
def actor_loss(critic, actor, obs):
    return -critic(obs, actor(obs)).mean()
def discriminator_loss(critic, actor, obs, action):
    return critic(obs, actor(obs)).mean() - critic(obs, action).mean()
def target(q1, q2, next_log_prob, alpha):
    return min(q1, q2) - alpha * next_log_prob
def other(q1, q2, neg_log_prob, alpha):
    return min(q1, q2) + alpha * neg_log_prob

# %% right
import torch
def loss(ratio, advantages, clip, log_alpha, log_prob, target_entropy, entropy):
    pg_loss1 = -advantages * ratio
    pg_loss2 = -advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    alpha_loss = -(log_alpha * (log_prob + target_entropy).detach()).mean()
    other_alpha_loss = (log_alpha * (entropy - target_entropy).detach()).mean()
    of_costs = ratio * advantages, torch.clamp(ratio, 1 - clip, 1 + clip) * advantages
    cost_loss = torch.max(ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages).mean()
    return pg_loss, alpha_loss, other_alpha_loss

# %% right
import torch
def update(logp, old, adv, clip):
    ratio = (logp - old).exp()
    surr1 = ratio * adv
    surr2 = torch.clamp(ratio, 1 - clip, 1 + clip) * adv
    loss_pi = -torch.min(surr1, surr2).mean()
    pg_loss1 = -adv * ratio
    return loss_pi, torch.max(pg_loss1, -adv * torch.clamp(ratio, 1 - clip, 1 + clip)).mean()

# %% right
def update(dist, actions, advantages, values, returns):
    loss = (dist.log_prob(actions) * advantages).mean()
    (-loss).backward()
    wrong_way_loss = (dist.log_prob(actions) * (values - returns)).mean()
    negated = -dist.log_prob(actions)
    policy_loss = (negated * advantages).mean()
    part_of_loss = dist.log_prob(actions) * advantages
    total_loss = -part_of_loss.sum()
    first_loss = dist.log_prob(actions) * advantages
    all_losses = first_loss.sum()
    total_loss = -all_losses
    less_loss = 0.0
    less_loss -= dist.log_prob(actions) * advantages

# %% right
def update(policy_loss, value_loss, dist, coef, entropy_loss):
    entropy = -dist.entropy().mean()
    loss = policy_loss + 0.5 * value_loss + coef * entropy
    other_loss = policy_loss + value_loss + coef * entropy_loss
    right_loss = policy_loss + value_loss - coef * dist.entropy().mean()
    return loss, other_loss, right_loss

# %% right
def update(actor_loss, logits, labels, target_entropy, log_alpha, log_pi):
    loss = actor_loss + cross_entropy(logits, labels)
    alpha_loss = -(log_alpha * (log_pi + target_entropy)).mean()
    code_loss = logits.mean() + 0.1 * labels.entropy().mean()
    return loss, alpha_loss, code_loss

# %% right
import torch
def update(ratio, advantages, clip):
    first = -advantages * ratio
    second = -advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
    pg_loss = torch.max(first, second).mean()
    return pg_loss
def target(q1, q2, next_obs, action, alpha, next_log_prob, reward, gamma, terminated):
    next_q = torch.min(q1(next_obs, action), q2(next_obs, action))
    return reward + gamma * (1 - terminated) * (next_q - alpha * next_log_prob)
