# L07: gradients add up, or are used before they are computed

# %% mistake
import torch
def update(loss, opt):
    loss.backward()
    opt.zero_grad()
    opt.step()  # here

# %% mistake
import torch
def update(self, batches):
    for batch in batches:
        with autocast():
            self.loss(batch).backward()
        self.optimizer.zero_grad()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.optimizer.step()  # here

# %% mistake
import torch
from mine import prepare, save
def train(net, optimizer, losses):
    prepare(net)
    for i, loss in enumerate(losses):
        loss.backward()
        optimizer.step()  # here
        if i % 100 == 0:
            save(net)

# %% mistake
import torch
def update(loss, optimizer):
    loss.backward()
    optimizer.step()  # here

# %% mistake
import torch
def update(loss, optimizer):
    optimizer.zero_grad()
    optimizer.step()  # here
    loss.backward()

# %% mistake
import torch
class Agent:
    def __init__(self, critic):
        self.critic_steps = torch.optim.Adam(critic.parameters())
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_steps, 1)
    def update(self, loss):
        # self.critic_steps.zero_grad()
        loss.backward()
        self.schedule.step()
        self.critic_steps.step()  # here

# %% mistake
import torch
from torch.optim import Adam
class Agent:
    def __init__(self, obs_dim, actions):
        self.actor, self.critic = Actor(obs_dim, actions), Critic(obs_dim, actions)
        self.actor_steps = Adam(self.actor.parameters())
        self.critic_steps = Adam(self.critic.parameters())
    def update(self, losses):
        self.critic_steps.zero_grad()
        losses[0].backward()
        self.critic_steps.step()
        losses[1].backward()
        self.actor_steps.step()  # here

# %% mistake
import torch
def update(critic_loss, optim_critic):
    optim_critic.zero_grad()
    optim_critic.step()  # here
    critic_loss.backward()

# %% mistake
import torch
from torch.optim.lr_scheduler import LinearLR
def minibatches(net, optimizer, schedule, data):
    for part in data.split(64):
        loss = net(part).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  # here
def main(net, collect, iterations):
    optimizer = torch.optim.Adam(net.parameters())
    schedule = LinearLR(optimizer, 1.0, 0.0, total_iters=iterations)
    for _ in range(iterations):
        data = collect()
        for _ in range(4):
            minibatches(net, optimizer, schedule, data)

# %% mistake
import torch
from tqdm import trange
def main(net, batches, n):
    optimizer = torch.optim.Adam(net.parameters())
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 - i / n)
    for update in trange(1, n + 1):
        for part in batches():
            optimizer.zero_grad()
            net(part).backward()
            optimizer.step()
            decay.step()  # here

# %% right
import torch
def update(net, optimizer, loss):
    for p in net.parameters():
        p.grad = None
    loss.backward()
    optimizer.step()

# %% right
import torch
from mine import clear_gradients
def update(net, optimizer, losses):
    for loss in losses:
        clear_gradients(net)
        loss.backward()
        optimizer.step()

# %% right
import torch
def update(optimizer, loss, clear):
    clear(optimizer)
    loss.backward()
    optimizer.step()

# %% right
import torch
def update(actor, critic, actor_optimizer, critic_optimizer, losses):
    losses[0].backward()
    critic_optimizer.zero_grad()
    actor_optimizer.step()
    losses[1].backward()
    torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
    critic_optimizer.step()
    actor_optimizer.zero_grad()
def by_hand(net, optimizer, loss, gradients):
    loss.backward()
    optimizer.zero_grad()
    for parameter, gradient in zip(net.parameters(), gradients):
        parameter.grad = gradient
    optimizer.step()
def first_step(optimizer, scheduler):
    optimizer.zero_grad()
    optimizer.step()
    scheduler.step()

# %% right
import torch
def update(losses, optimizer, scheduler):
    optimizer.zero_grad()
    for loss in losses:
        loss.backward()
    optimizer.step()
    scheduler.step()

# %% right
import torch
def update(optimizer, batches, net):
    optimizer.zero_grad()
    for batch in batches:
        optimizer.step()
        optimizer.zero_grad()
        net(batch).backward()
        optimizer.step()

# %% right
import torch
from torch.optim import Adam
class Agent:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor, critic
        self.both = Both(actor, critic)
        self.actor_steps = Adam(self.actor.parameters())
        self.both_steps = Adam(self.both.parameters())
    def update(self, losses):
        self.both_steps.zero_grad()
        losses[0].backward()
        self.both_steps.step()
        losses[1].backward()
        self.actor_steps.step()

# %% right
import torch
from torch.optim import Adam
actor_steps, critic_steps = Adam(actor.parameters()), Adam(critic.parameters())
def update(losses):
    critic_steps.zero_grad()
    actor.zero_grad()
    losses[0].backward()
    critic_steps.step()
    actor_steps.step()

# %% right
import torch
from torch.optim import Adam
actor_steps, critic_steps = Adam(actor.parameters()), Adam(critic.parameters())
def update(losses):
    critic_steps.zero_grad()
    for p in actor.parameters():
        p.grad = None
    losses[0].backward()
    critic_steps.step()
    actor_steps.step()

# %% right
import torch
from torch.distributed import autograd
from torch.distributed.optim import DistributedOptimizer
def train(net, batches, parameters):
    optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.05)
    for batch in batches:
        with autograd.context() as context:
            autograd.backward(context, [net(batch).mean()])
            optimizer.step(context)

# %% right
import torch
def update(closure, optim):
    optim.zero_grad()
    optim.step(closure)

# %% right
import torch
from torch.optim.lr_scheduler import LinearLR
def minibatches(net, optimizer, schedule, data):
    for part in data.split(64):
        loss = net(part).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
def main(net, collect, iterations):
    optimizer = torch.optim.Adam(net.parameters())
    schedule = LinearLR(optimizer, 1.0, 0.0, total_iters=iterations)
    for _ in range(iterations):
        data = collect()
        for _ in range(4):
            minibatches(net, optimizer, schedule, data)
        schedule.step()

# %% right
import torch
from tqdm import trange
def main(net, batches, n):
    optimizer = torch.optim.Adam(net.parameters())
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 - i / n)
    for update in trange(1, n + 1):
        for part in batches():
            optimizer.zero_grad()
            net(part).backward()
            optimizer.step()
            if part.last:
                decay.step()
