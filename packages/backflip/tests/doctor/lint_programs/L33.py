# L33: the loss is of the best action, not of the one taken

# %% mistake
import torch.nn.functional as F
def update(q_net, obs, targets):
    q_values = q_net(obs)
    best = q_values.max(dim=1)[0]
    return F.mse_loss(best, targets)  # here

# %% mistake
import tensorflow as tf
class Agent:
    def build(self):
        self.q_output = tf.matmul(self.hidden, self.weights)
        self.max_q = tf.reshape(tf.reduce_max(self.q_output), (1, 1))
        self.loss = tf.losses.mean_squared_error(self.max_q, self.reward_labels)  # here

# %% mistake
def loss(q_net, obs, reward, next_q, gamma):
    goal = reward + gamma * next_q
    return (q_net(obs).amax(1) - goal).square().mean()  # here

# %% right
import torch
import torch.nn.functional as F
def update(q_net, target_net, obs, next_obs, actions, reward, gamma):
    with torch.no_grad():
        best = q_net(obs).max(1)[0]
        target = reward + gamma * target_net(next_obs).max(1)[0]
    taken = q_net(obs).gather(1, actions).squeeze(1)
    diagnostic = F.mse_loss(best, target)
    return F.mse_loss(taken, target)
def distil(value_net, q_net, obs):
    return F.mse_loss(value_net(obs), q_net(obs).max(1)[0].detach())
def next_best(q_net, next_obs, target_prediction):
    best = q_net(next_obs).max(1)[0]
    return F.mse_loss(best, target_prediction)
