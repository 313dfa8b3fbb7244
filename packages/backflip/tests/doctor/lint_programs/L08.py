# L08: the mode of a network differs between acting and learning

# %% mistake
import torch
for step in range(100):
    opt.zero_grad()
    loss(policy).backward()
    opt.step()
    if step % 10 == 0:
        policy.eval()  # here
        evaluate(policy)

# %% mistake
import torch
class Agent:
    def act(self, obs):
        self.net.eval()  # here
        return self.net(obs)
    def update(self, batch):
        self.opt.zero_grad()
        loss(self.net, batch).backward()
        self.opt.step()
agent = Agent()
for step in range(100):
    agent.act(obs)
    agent.update(batch)

# %% mistake
import torch
def train(policy, opt, data):
    for loss in data:
        opt.zero_grad()
        loss.backward()
        opt.step()
def main(policy, opt, data, env):
    for epoch in range(10):
        train(policy, opt, data)
        evaluate(policy, env)
def evaluate(policy, env):
    policy.eval()  # here

# %% mistake
import torch
encoder.eval()  # here
encoder.first.requires_grad_(False)
def update(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()

# %% mistake
import torch
def evaluate(policy):
    policy.eval()  # here
def learn(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()

# %% mistake
import torch
from torch import nn
class Actor(nn.Module):
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.1), nn.Linear(64, 2))  # here
def loss(new, old, advantage, opt):
    logratio = new - old
    ratio = logratio.exp()
    opt.zero_grad()
    (-ratio * advantage).mean().backward()

# %% mistake
import torch
def train(agent, opt, losses):
    for loss in losses:
        opt.zero_grad()
        loss.backward()
        opt.step()
        agent.train(False)  # here
        evaluate(agent)

# %% mistake
import torch
from torch import nn
def body(size):
    return nn.Sequential(nn.Linear(size, 64), nn.BatchNorm1d(64), nn.Linear(64, 2))  # here
def surrogate(log_prob, old, advantage):
    ratio = torch.exp(log_prob - old)
    return -(ratio * advantage).mean()

# %% mistake
import copy
import torch
def main(net, data):
    mine = copy.deepcopy(net)
    mine.eval()  # here
    opt = torch.optim.Adam(mine.parameters())
    other = copy.deepcopy(net)
    other.eval()  # here
    for x in data:
        opt.zero_grad()
        mine(x).backward()
        opt.step()
    learn(model=other)
class Learner:
    def __init__(self, body, opt):
        self.body, self.opt = body, opt
        self.body.eval()  # here
    def step(self, x):
        with torch.no_grad():
            self.body(x)
        self.opt.zero_grad()
        self.body(x).backward()
        self.opt.step()
class Player:
    def __init__(self, policy):
        self.policy = policy
    def play(self, x):
        self.policy.eval()  # here
        with torch.no_grad():
            self.policy(x)

# %% mistake
import torch
from torch import nn
class ActorCritic(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(n, 64), nn.BatchNorm1d(64), nn.Linear(64, k)  # here
def surrogate(net, batch, eps):
    diff = net.log_prob(batch.o, batch.a) - batch.lp
    w = torch.exp(diff.sum(-1))
    return torch.min(w * batch.adv, w.clamp(min=1 - eps, max=1 + eps) * batch.adv).mean()

# %% mistake
import torch
import torch.nn as nn
def policy(n, k):
    return nn.Sequential(nn.Linear(n, 64), nn.Dropout(p=0.2), nn.Tanh(), nn.Linear(64, k))  # here
def surrogate(p, old, adv):
    imp = p / old
    return torch.min(imp * adv, torch.clamp(imp, 0.8, 1.2) * adv).mean()

# %% mistake
import torch
from torch import nn

def score(net, env, episodes):
    net.eval()  # here
    return sum(play(net, env) for _ in range(episodes)) / episodes

def clone(net, batches, env, opt):
    net.train()
    for number, (obs, act) in enumerate(batches):
        loss = nn.functional.mse_loss(net(obs), act)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if number % 1000 == 0:
            print(score(net, env, 5))

# %% mistake
import torch

class Learner:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
        self.net.train()

    def update(self, batch):
        loss = self.net(batch).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def check(self, states):
        self.net.eval()  # here
        with torch.no_grad():
            return self.net(states).mean().item()

    def run(self, stream, states):
        for step, batch in enumerate(stream):
            self.update(batch)
            if step % 100 == 0:
                print(self.check(states))

Learner(net, opt).run(stream, states)

# %% mistake
import torch

def main(model, loader, opt, held_out):
    for epoch in range(20):
        model.train()
        for step, (x, y) in enumerate(loader):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 500 == 0:
                model.eval()  # here
                with torch.no_grad():
                    print(epoch, step, (model(held_out[0]).argmax(1) == held_out[1]).float().mean())

# %% mistake
import torch

class Check:
    def __init__(self, env):
        self.env = env

    def __call__(self, actor):
        actor.eval()  # here
        return play(self.env, actor)

def fit(actor, data, opt, env):
    check = Check(env)
    actor.train()
    while data.has_more():
        loss = (actor(data.obs()) - data.act()).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(check(actor))

# %% right
import torch
def train(policy, opt, data):
    for loss in data:
        opt.zero_grad()
        loss.backward()
        opt.step()
def main(policy, opt, data, env):
    train(policy, opt, data)
    policy.eval()
    evaluate(policy, env)

# %% right
import torch
class Agent:
    def update(self, loss, opt):
        opt.zero_grad()
        loss.backward()
        opt.step()
    def play(self, env):
        self.policy.eval()
def main(env, seed):
    agent = Agent(seed)
    for step in range(100):
        agent.update(env)
    agent.play(env)
for seed in range(5):
    main(make(), seed)

# %% right
import torch
def learn(policy, loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()
if only_play:
    policy.eval()
    play(policy)
else:
    learn(policy, make(), opt)

# %% right
import torch
encoder.eval()
encoder.requires_grad_(False)
self.vision.eval()
for parameter in self.vision.parameters():
    parameter.requires_grad = False
def update(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()

# %% right
import torch
def evaluate(policy, target_policy):
    policy.eval()
    target_policy.eval()
    policy.train()
def learn(loss, opt):
    opt.zero_grad()
    loss.backward()

# %% right
import torch
from torch import nn
def body(size):
    return nn.Sequential(nn.Linear(size, 64), nn.Dropout(0.1))
def train(agent, opt, losses, mode):
    for loss in losses:
        opt.zero_grad()
        loss.backward()
        opt.step()
        agent.train(False)
        evaluate(agent)
        agent.train(mode)

# %% right
import copy
import torch
def main(net, opt, data):
    best = copy.deepcopy(net)
    best.eval()
    for x in data:
        opt.zero_grad()
        net(x).backward()
        opt.step()
        best.load_state_dict(net.state_dict())
        play(best)
class Learner:
    def __init__(self, backbone, head, opt):
        self.backbone, self.head, self.opt = backbone, head, opt
        self.backbone.to("cuda").eval()
        self.backbone.eval()
    def step(self, x):
        with torch.no_grad():
            z = self.backbone(x)
        self.opt.zero_grad()
        self.head(z).backward()
        self.opt.step()
def distil(data, student, opt):
    guide = load("guide")
    guide.eval()
    for x in data:
        with torch.no_grad():
            y = guide(x)
        opt.zero_grad()
        (student(x) - y).backward()
        opt.step()

# %% right
import torch
from transformers import AutoModelForCausalLM
def train(name, batches, loss_of):
    lm = AutoModelForCausalLM.from_pretrained(name)
    lm.eval()
    opt = torch.optim.AdamW(lm.parameters())
    for batch in batches:
        loss = loss_of(lm(batch))
        opt.zero_grad()
        loss.backward()
        opt.step()

# %% right
import torch
from torch import nn
class Critic(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 64), nn.Dropout(0.1), nn.Linear(64, 1))
class Policy(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 64), nn.Dropout(0.0), nn.Linear(64, k))
def surrogate(lp, old, adv, eps):
    w = (lp - old).exp()
    return torch.min(w * adv, w.clamp(1 - eps, 1 + eps) * adv).mean()

# %% right
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.1), nn.Linear(64, 2))
def loss(logits, adv, scale):
    weight = torch.exp(adv - scale).clamp(0.0, 100.0)
    share = torch.clamp(logits.exp(), 1 - scale, 1 + scale)
    return (weight * share).mean()

# %% right
import torch

class Check:
    def __call__(self, actor):
        actor.eval()
        return play(actor)

def update(actor, batch, opt):
    actor.train()
    loss = (actor(batch[0]) - batch[1]).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

def fit(actor, data, opt):
    check = Check()
    actor.train()
    for batch in data:
        update(actor, batch, opt)
        print(check(actor))

# %% right
import torch

def evaluate(model, x):
    model.eval()
    return model(x).argmax(1)

def fit(model, loader, opt, x):
    for epoch in range(20):
        model.train()
        for obs, act in loader:
            loss = torch.nn.functional.cross_entropy(model(obs), act)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, evaluate(model, x))
    model.eval()
    for obs in x:
        print(model(obs))

# %% right
import torch

def fit(student, make_teacher, loader, opt):
    student.train()
    for obs in loader:
        teacher = make_teacher()
        teacher.eval()
        loss = (student(obs) - teacher(obs).detach()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

# %% right
import torch

def fit(student, guide, loader, opt, tests):
    student.train()
    for obs in loader:
        guide.eval()
        loss = (student(obs) - guide(obs).detach()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    for one in tests:
        student.eval()
        print(student(one))

# %% right
import torch

class Trainer:
    def prepare(self):
        self.net.train()

    def fit(self, loader, opt):
        self.prepare()
        for obs in loader:
            net = self.make()
            net.eval()
            loss = (self.net(obs) - net(obs).detach()).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
