# L51: gradients are clipped too early

# %% mistake
import torch
def update(loss, net, optimizer):
    optimizer.zero_grad()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)  # here
    loss.backward()
    optimizer.step()

# %% right
import torch
def update(loss, net, optimizer):
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
def both(loss, other, net, optimizer):
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    other.backward()
    optimizer.step()
def summed(losses, net, optimizer):
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    for loss in losses:
        loss.backward()
