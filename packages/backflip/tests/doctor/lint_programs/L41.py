# L41: the action is of another state

# %% mistake
def losses(critic, actor, target_critic, target_actor, states, next_states):
    wanted = -critic(states, actor(next_states)).mean()  # here
    value = target_critic(next_states, target_actor(states))  # here
    return wanted, value
class Agent:
    def judged(self, obs, next_obs):
        return self.critic_1(next_obs, self.actor(obs))  # here

# %% mistake
import torch
def loss(q, target_q, states, actions, rewards, next_states, ends, gamma):
    with torch.no_grad():
        best = q(states).argmax(1)
        after = target_q(next_states).gather(1, best.unsqueeze(1)).squeeze(1)  # here
        y = rewards + gamma * (1 - ends) * after
    return (q(states).gather(1, actions).squeeze(1) - y).pow(2).mean()

# %% right
import torch
def losses(critic, actor, target_critic, target_actor, q, target_q, states, next_states):
    wanted = -critic(states, actor(states)).mean()
    value = target_critic(next_states, target_actor(next_states))
    best = q(next_states).argmax(1)
    after = target_q(next_states).gather(1, best.unsqueeze(1))
    value_of_goal = critic(states, actor(goals_of(states)))
    return wanted, value, after, value_of_goal
