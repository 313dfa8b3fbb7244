# L05: gradients flow through the target, or not through the log-probability

# %% mistake
import torch
import torch.nn.functional as F
def update(net, optimizer, obs, action, reward, nobs, gamma):
    target = reward + gamma * net(nobs).max(1)[0]  # here
    loss = F.mse_loss(net(obs).gather(1, action).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% mistake
import torch
import torch.nn.functional as F
def update(q, opt, s, a, r, s2, term):
    y = r + .99 * (1 - term) * q(s2).max(1)[0]  # here
    loss = F.mse_loss(q(s).gather(1, a).squeeze(1), y)
    opt.zero_grad()
    loss.backward()

# %% mistake
import torch
def update(self, b):
    next_q = self.model(b.next_states).max(1)[0]
    target = b.r + self.gamma * next_q * (1 - b.done)  # here
    loss = torch.nn.functional.smooth_l1_loss(self.model(b.states).max(1)[0], target)
    self.optimizer.zero_grad()
    loss.backward()

# %% mistake
import torch
def update(q_net, optimizer, batch, gamma):
    target = batch.r + gamma * q_net(batch.next_obs).max(1)[0]  # here
    loss = torch.nn.functional.mse_loss(q_net(batch.obs).gather(1, batch.a), target)
    loss.backward()
    optimizer.zero_grad()

# %% mistake
import torch
def update(self, b):
    y = b.r + self.gamma * (1 - b.done) * self.critic(b.next_obs)  # here
    loss = ((self.critic(b.obs) - y) ** 2).mean()
    self.optimizer.zero_grad()
    loss.backward()

# %% mistake
import torch.nn.functional as F
def td_loss(q_net, batch, gamma):
    best = q_net(batch.next_obs).max(dim=-1).values
    best = best * ~batch.done
    expected = batch.reward + gamma * best  # here
    loss = F.huber_loss(q_net(batch.obs).gather(1, batch.a), expected)
    return loss
def learn(net, opt, batch, gamma):
    opt.zero_grad()
    td_loss(net, batch, gamma).backward()
    opt.step()

# %% mistake
import jax
import jax.numpy as jnp
import optax
def make_step(net, gamma):
    def loss_fn(params, batch):
        q = net.apply(params, batch.obs).max(-1)
        following = jnp.max(net.apply(params, batch.next_obs), axis=-1)
        y = batch.reward + gamma * batch.alive * following  # here
        return jnp.mean(optax.huber_loss(q, y))
    return jax.jit(jax.value_and_grad(loss_fn))

# %% mistake
import torch
import torch.nn.functional as F
def update(q_net, opt, s, r, next_s, gamma, learns):
    best = q_net(next_s).argmax(1)
    y = r + gamma * q_net(next_s)[range(len(best)), best]  # here
    torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    other = r.item() + gamma * q_net(next_s).max(1)[0]  # here
    with torch.set_grad_enabled(learns):
        third = r + gamma * q_net(next_s).max(1)[0].float()  # here
    loss = F.mse_loss(q_net(s), y) + F.mse_loss(q_net(s), other) + F.mse_loss(q_net(s), third)
    opt.zero_grad()
    loss.backward()

# %% mistake
import torch
import torch.nn.functional as F
from torch import nn
def update(q_net, opt, s, a, r, s2, gamma):
    q = q_net(s).max(1)[0]
    loss = F.mse_loss(q, r + gamma * q_net(s2).max(1).values)  # here
    loss += ((q - (r + gamma * q_net(s2).max(1).values)) ** 2).mean()  # here
    loss += (r + gamma * q_net(s2).max(1).values - q).pow(2).mean()  # here
    loss += nn.MSELoss()(q, r + gamma * q_net(s2).max(1).values)  # here
    opt.zero_grad()
    loss.backward()

# %% mistake
import torch
criterion = torch.nn.SmoothL1Loss()
def update(policy_net, optimizer, states, actions, rewards, states_, GAMMA):
    value = policy_net(states).gather(1, actions)
    following = policy_net(states_).max(1)[0]
    expected = (following * GAMMA) + rewards  # here
    loss = criterion(value, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% mistake
import jax
import jax.numpy as jnp
def loss(params, apply, batch):
    o, a, r, o2, d = batch
    q = apply(params, o)[jnp.arange(len(a)), a]
    following = apply(params, o2).max(-1)
    target = r + 0.99 * (1 - d) * following  # here
    return ((q - target) ** 2).mean()
gradient = jax.grad(loss)

# %% mistake
import tensorflow as tf
def train(model, optimizer, s, a, r, s2, done, gamma):
    with tf.GradientTape() as tape:
        target = r + gamma * (1 - done) * tf.reduce_max(model(s2), axis=1)  # here
        q = tf.reduce_sum(model(s) * tf.one_hot(a, 2), axis=1)
        loss = tf.reduce_mean(tf.square(target - q))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

# %% mistake
import tensorflow as tf
mse = tf.keras.losses.MeanSquaredError()
class Agent:
    def learn(self, states, actions, rewards, next_states, dones):
        with tf.GradientTape() as tape:
            q = tf.gather(self.q_net(states), actions, batch_dims=1)
            next_q = tf.reduce_max(self.q_net(next_states), axis=-1)
            y = rewards + self.gamma * next_q * (1 - dones)  # here
            loss = mse(y, q)
        self.opt.minimize(loss, self.q_net.trainable_variables, tape=tape)

# %% mistake
import keras
import tensorflow as tf
loss_function = keras.losses.Huber()
def step(model, state, next_state, action, reward, gamma):
    with tf.GradientTape() as tape:
        future = keras.ops.max(model(next_state), axis=1)
        updated_q_values = reward + gamma * future  # here
        q_action = keras.ops.sum(model(state) * action, axis=1)
        loss = loss_function(updated_q_values, q_action)
    variables = model.trainable_variables
    return tape.gradient(loss, variables)

# %% mistake
import torch
class Agent:
    def backup(self, reward, successor, alive, gamma):
        _, value = self.net(successor)
        return reward + gamma * alive * value  # here
    def update(self, obs, reward, successor, alive, gamma):
        policy, value = self.net(obs)
        error = self.backup(reward, successor, alive, gamma) - value
        loss = error.pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

# %% mistake
import torch
from torch.distributions import Normal
class Actor:
    def evaluate(self, obs, act):
        return Normal(self.mean(obs), 1.0).log_prob(act).sum(-1).detach()  # here
def loss(actor, obs, act, weight):
    logp = actor.evaluate(obs, act)
    policy_loss = -(logp * weight).mean()
    return policy_loss

# %% mistake
import torch
def update(policy, optimizer, obs, actions, advantages):
    with torch.no_grad():
        log_probs = policy(obs).log_prob(actions)  # here
    policy_loss = -(log_probs * advantages).mean()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()

# %% mistake
import torch
class Learner:
    def segment(self, n):
        return self.rollout(n)
    def update(self, n):
        logp_of_actions, weights, critic_error = self.segment(n)
        policy_part = -(logp_of_actions.detach() * weights).mean()  # here
        loss = policy_part + 0.5 * critic_error
        loss.backward()
import jax
import jax.numpy as jnp
def make(net, discount):
    def cost(state, batch):
        chosen = net.apply(state["q"], batch["x"])[:, 0]
        boot = net.apply(state["q"], batch["y"]).max(-1)
        delta = batch["rew"] + discount * (1 - batch["over"]) * boot - chosen  # here
        return jnp.square(delta).mean()
    return jax.jit(jax.value_and_grad(cost))

# %% mistake
import equinox as eqx
import jax
@eqx.filter_value_and_grad
def cost(model, path):
    v = jax.vmap(model)(path.xs)
    y = path.gains + 0.98 * path.alive * v[1:]  # here
    return ((v[:-1] - y) ** 2).mean()

# %% mistake
import jax
import optax
SHARE_GAMMA = 0.9
class Learner:
    def cost(self, theta, b):
        said = self.apply(theta.critic, b.x, b.u)
        tail = self.apply(theta.critic, b.xx, b.uu)
        return optax.l2_loss(said, b.gain + SHARE_GAMMA * b.mask * tail).mean()  # here
    def update(self, theta, b):
        return jax.grad(lambda p: self.cost(p, b))(theta)

# %% mistake
import jax
import optax
def delta_cost(params, x, gain, y, gamma):
    def value(z):
        if z.ndim == 1:
            return z @ params["w"]
        return (z @ params["w"])[:, 0]
    delta = gain + gamma * value(y) - value(x)  # here
    return optax.huber_loss(delta).mean()
grads = jax.grad(delta_cost, argnums=0)

# %% mistake
import torch
from torch.distributions import Categorical

def decide(net, obs):
    with torch.no_grad():
        dist = Categorical(logits=net(obs))
        act = dist.sample()
        return act.item(), dist.log_prob(act)  # here

def improve(net, opt, chances, gains):
    objective = -(torch.stack(chances) * gains).sum()
    opt.zero_grad()
    objective.backward()
    opt.step()

def episode(net, env, opt, gains):
    chances = []
    for obs in env:
        act, chance = decide(net, obs)
        chances.append(chance)
    improve(net, opt, chances, gains(env))

# %% mistake
import torch
from torch.distributions import Normal

class Memory:
    def __init__(self):
        self.lls, self.marks = [], []

    def keep(self, one, mark):
        self.lls.append(one)
        self.marks.append(mark)

class Player:
    def play(self, x):
        d = Normal(self.mean(x), 1.0)
        u = d.sample()
        return u, d.log_prob(u).sum().item()  # here

    def collect(self, env, memory):
        u, ll = self.play(env.x)
        memory.keep(ll, env.go(u))

    def learn(self, memory):
        weight = torch.tensor(memory.marks) - 0.5
        cost = -(weight * torch.tensor(memory.lls)).mean()
        self.opt.zero_grad()
        cost.backward()
        self.opt.step()

# %% mistake
from dataclasses import dataclass
import torch

@dataclass
class Step:
    sure: torch.Tensor
    gain: float = 0.0

def act(dist, steps):
    u = dist.sample()
    ll = dist.log_prob(u).detach()  # here
    steps.append(Step(sure=ll))
    return u

def update(opt, steps):
    total = 0
    for step in steps:
        part = -step.sure * step.gain
        total = total + part
    opt.zero_grad()
    total.backward()
    opt.step()

# %% mistake
import torch
def learn(judge, batch, discount):
    optimiser = torch.optim.Adam(judge.parameters())
    aim = batch.pay + discount * batch.going * judge(batch.after)  # here
    loss = (judge(batch.seen) - aim).pow(2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

# %% right
import torch
import torch.nn.functional as F
def update(q, head, opt, s, s2, r, term, average):
    smooth = 0.01 * r + 0.99 * q(s)
    weighted = r + 0.5 * q(s)
    with torch.no_grad():
        y = r + 0.99 * (1 - term) * q(s2)
    loss = F.mse_loss(q(s), y) + F.mse_loss(smooth, average) + F.mse_loss(weighted, average)
    opt.zero_grad()
    loss.backward()

# %% right
import torch
def update(q_net, target_net, b, gamma, opt):
    with torch.no_grad():
        target = b.r + gamma * q_net(b.next_obs).max(1)[0]
    other = b.r + gamma * target_net(b.next_obs).max(1)[0]
    third = b.r + gamma * q_net(b.next_obs).max(1)[0].detach()
    fourth = b.r + gamma * q_net(b.next_obs).max(1)[0]
    q = q_net(b.obs)
    loss = sum(torch.nn.functional.mse_loss(q, t) for t in (target, other, third))
    loss += torch.nn.functional.mse_loss(q, fourth.detach())
    opt.zero_grad()
    loss.backward()

# %% right
import torch
import torch.nn.functional as F
def td_loss(q_net, frozen_net, batch, gamma):
    expected = batch.reward + gamma * frozen_net(batch.next_obs).max(1)[0]
    return F.huber_loss(q_net(batch.obs).gather(1, batch.a), expected)
def td_error(q_net, batch, gamma):
    expected = batch.reward + gamma * q_net(batch.next_obs).max(1)[0]
    loss = F.huber_loss(q_net(batch.obs).gather(1, batch.a), expected)
    return loss
def learn(net, frozen, opt, batch, gamma):
    opt.zero_grad()
    td_loss(net, frozen, batch, gamma).backward()
    opt.step()
    with torch.no_grad():
        print(td_error(net, batch, gamma))

# %% right
import jax
import jax.numpy as jnp
def make_step(net, gamma):
    def loss_fn(params, target_params, batch):
        q = net.apply(params, batch.obs).max(-1)
        one = batch.reward + gamma * net.apply(target_params, batch.next_obs).max(-1)
        other = batch.reward + gamma * net.apply(params, batch.next_obs).max(-1)
        other = jax.lax.stop_gradient(other)
        third = batch.reward + gamma * jax.lax.stop_gradient(net.apply(params, batch.next_obs))
        return jnp.mean((q - one) ** 2 + (q - other) ** 2 + (q - third) ** 2)
    return jax.value_and_grad(loss_fn)
def error(params, net, batch, gamma):
    following = batch.reward + gamma * net.apply(params, batch.next_obs)
    return net.apply(params, batch.obs) - following

# %% right
import torch
import torch.nn.functional as F
def update(q_net, target_net, opt, s, r, next_s, gamma):
    best = q_net(next_s).argmax(1)
    y = r + gamma * target_net(next_s)[range(len(best)), best]
    places = q_net(next_s).max(1)[1]
    other = r + gamma * target_net(next_s, places)
    chosen = pick(q_net(next_s))
    third = r + gamma * target_net(next_s).gather(1, chosen).squeeze(1)
    fourth = r + gamma * q_net(next_s).max(1)[0].data
    fifth = r + gamma * float(q_net(next_s).max())
    sixth = r + gamma * torch.tensor(q_net(next_s).max(1)[0].tolist())
    next_q = q_net(next_s).max(1)[0]
    next_q.detach_()
    seventh = r + gamma * next_q
    eighth = r + gamma * (q_net(next_s).max(1)[0] > 0) * 0.5
    goals = (y, other, third, fourth, fifth, sixth, seventh, eighth)
    loss = sum(F.mse_loss(q_net(s), one) for one in goals)
    loss = loss + sum((F.mse_loss(q_net(s), y), F.mse_loss(q_net(s), other)))
    loss = loss + sum((F.mse_loss(q_net(s), third), F.mse_loss(q_net(s), fourth)))
    loss = loss + sum((F.mse_loss(q_net(s), fifth), F.mse_loss(q_net(s), sixth)))
    loss = loss + sum((F.mse_loss(q_net(s), seventh), F.mse_loss(q_net(s), eighth)))
    opt.zero_grad()
    loss.backward()

# %% right
import torch
import torch.nn.functional as F
def update(q_net, opt, s, r, next_s, gamma):
    with torch.set_grad_enabled(False):
        y = r + gamma * q_net(next_s).max(1).values
    torch.set_grad_enabled(False)
    other = r + gamma * q_net(next_s).max(1).values
    torch.set_grad_enabled(True)
    loss = F.mse_loss(q_net(s), y) + F.mse_loss(q_net(s), other)
    opt.zero_grad()
    loss.backward()

# %% right
import torch
import torch.nn.functional as F
def update(q_net, target_net, opt, s, a, r, s2, gamma):
    q = q_net(s).gather(1, a).squeeze(1)
    loss = F.mse_loss(q, r + gamma * target_net(s2).max(1).values)
    loss += F.mse_loss(q, (r + gamma * q_net(s2).max(1).values).detach())
    error = r + gamma * q_net(s2).max(1).values - q
    opt.zero_grad()
    loss.backward()
    with torch.no_grad():
        F.mse_loss(q, r + gamma * q_net(s2).max(1).values)
    return error.detach()

# %% right
import torch
criterion = torch.nn.SmoothL1Loss()
def update(policy_net, target_net, optimizer, states, actions, rewards, states_, GAMMA):
    value = policy_net(states).gather(1, actions)
    following = target_net(states_).max(1)[0]
    expected = (following * GAMMA) + rewards
    loss = criterion(value, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% right
import tensorflow as tf
def train(model, optimizer, s, a, r, s2, done, gamma):
    target = r + gamma * (1 - done) * tf.reduce_max(model(s2), axis=1)
    with tf.GradientTape() as tape:
        q = tf.reduce_sum(model(s) * tf.one_hot(a, 2), axis=1)
        loss = tf.reduce_mean(tf.square(target - q))
    grads = tape.gradient(loss, model.trainable_variables)

# %% right
import numpy as np
import tensorflow as tf
def train(model, target_model, s, a, r, s2, done, gamma):
    with tf.GradientTape() as tape:
        one = r + gamma * (1 - done) * tf.reduce_max(target_model(s2), axis=1)
        other = tf.stop_gradient(r + gamma * tf.reduce_max(model(s2), axis=1))
        third = r + gamma * np.max(model(s2), axis=1)
        fourth = r + gamma * model(s2).numpy().max(1)
        q = tf.reduce_sum(model(s) * tf.one_hot(a, 2), axis=1)
        loss = tf.reduce_mean(tf.square(one - q)) + tf.reduce_mean(tf.square(other - q))
        loss += tf.reduce_mean(tf.square(third - q)) + tf.reduce_mean(tf.square(fourth - q))
    return tape.gradient(loss, model.trainable_variables)

# %% right
import tensorflow as tf
class Agent:
    def learn(self, s, a, r, s2, gamma):
        with tf.GradientTape() as tape:
            target = r + gamma * self.critic(s2)
            advantage = target - self.critic(s)
            loss = -tf.reduce_mean(self.actor.log_prob(s, a) * advantage)
        grads = tape.gradient(loss, self.actor.trainable_variables)
        y = r + gamma * self.critic(s2)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - self.critic(s)) ** 2)
        grads = tape.gradient(loss, self.critic.trainable_variables)

# %% right
import tensorflow as tf
def train(model, s, r, s2, gamma):
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            target = r + gamma * tf.reduce_max(model(s2), axis=1)
        q = tf.reduce_max(model(s), axis=1)
        loss = tf.reduce_mean(tf.square(target - q))
    return tape.gradient(loss, model.trainable_variables)

# %% right
import torch
class Agent:
    @torch.no_grad()
    def backup(self, reward, successor, alive, gamma):
        _, value = self.net(successor)
        return reward + gamma * alive * value
    def update(self, obs, reward, successor, alive, gamma):
        policy, value = self.net(obs)
        error = self.backup(reward, successor, alive, gamma) - value
        loss = error.pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

# %% right
import torch
def update(policy, optimizer, obs, actions, advantages, log_alpha, alpha_optimizer, entropy):
    log_probs = policy(obs).log_prob(actions)
    policy_loss = -(log_probs * advantages).mean()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    alpha_loss = -(log_alpha * (policy(obs).log_prob(actions) + entropy).detach()).mean()
    alpha_optimizer.zero_grad()
    alpha_loss.backward()
    alpha_optimizer.step()

# %% right
import torch
class Learner:
    def segment(self, n):
        return self.rollout(n)
    def update(self, n):
        logp_of_actions, weights, critic_error = self.segment(n)
        policy_part = -(logp_of_actions * weights).mean()
        loss = policy_part + 0.5 * critic_error
        loss.backward()

# %% right
import torch
def loss(policy, obs, actions, advantages, old_logp):
    gap = policy(obs).log_prob(actions) - old_logp.detach()
    policy_loss = -(gap * advantages).mean()
    return policy_loss
import jax
import jax.numpy as jnp
import optax
def cost(state, batch, gamma):
    chosen = apply(state["q"], batch["x"])[:, 0]
    boot = jax.lax.stop_gradient(apply(state["q"], batch["y"])).max(-1)
    delta = batch["rew"] + gamma * (1 - batch["over"]) * boot - chosen
    return jnp.square(delta).mean()
def slow(params, batch, gamma):
    y = batch.gain + gamma * batch.alive * apply(params.target_critic, batch.y)
    return optax.l2_loss(apply(params.critic, batch.x), y).mean()
def frozen(params, batch, gamma):
    same = jax.tree.map(jax.lax.stop_gradient, params)
    y = batch.gain + gamma * apply(same, batch.y)
    return ((apply(params, batch.x) - y) ** 2).mean()
def model(params, batch, gamma):
    ahead = batch.x + gamma * apply(params, batch.x)
    return ((ahead - batch.y) ** 2).mean()
def residual(params, b, gamma):
    return ((b.gain + gamma * apply(params, b.y) - apply(params, b.x)) ** 2).mean()
def step(params, batch):
    yield jax.grad(cost)(params, batch, 0.9)
    yield jax.grad(slow)(params, batch, 0.9)
    yield jax.grad(frozen)(params, batch, 0.9)
    yield jax.grad(model)(params, batch, 0.9)
    yield jax.grad(residual)(params, batch, 0.9)

# %% right
import torch
def update(self, obs, optimizer):
    actions, log_prob = self.actor(obs)
    log_prob = self.actor.distribution(obs).log_prob(actions).reshape(-1, 1)
    ent_coef_loss = -(self.log_ent_coef * (log_prob + self.target_entropy).detach()).mean()
    optimizer.zero_grad()
    ent_coef_loss.backward()
    optimizer.step()

# %% right
import torch
from torch.distributions import Categorical

def decide(net, obs):
    with torch.no_grad():
        dist = Categorical(logits=net(obs))
        act = dist.sample()
        return act, dist.log_prob(act)

def improve(net, opt, seen, acts, gains):
    chances = Categorical(logits=net(seen)).log_prob(acts)
    objective = -(chances * gains).mean()
    opt.zero_grad()
    objective.backward()
    opt.step()

# %% right
import torch
from torch.nn import functional as F

def decide(dist, kept):
    act = dist.sample()
    kept.append(dist.log_prob(act).detach())
    return act

def improve(net, opt, seen, acts, gains, kept):
    surprise = -(torch.stack(kept) * gains).mean()
    loss = (F.cross_entropy(net(seen), acts, reduction="none") * gains).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return surprise.item()

# %% right
import torch
def learn(judge, batch, discount):
    optimiser = torch.optim.Adam(judge.parameters())
    with torch.no_grad():
        aim = batch.pay + discount * batch.going * judge(batch.after)
    loss = (judge(batch.seen) - aim).pow(2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
