"""Steps of PyTorch's own tutorials and examples, as they are written there."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles
from zoo.steps.table import CALLS, WORDS, Training, adamw, classes, fit, images, published, words


class CharRNN(nn.Module):
    """Of names and their languages."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.hidden_size = hidden
        self.i2h = nn.Linear(inputs, hidden)
        self.h2h = nn.Linear(hidden, hidden)
        self.h2o = nn.Linear(hidden, outputs)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        hidden = functional.tanh(self.i2h(x) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def init_hidden(self) -> Tensor:
        return torch.zeros(1, self.hidden_size, dtype=torch.float64)


@published
def names_and_languages() -> Training:
    """Letters one by one, and an update by hand."""
    rnn, criterion, rate = CharRNN(12, 8, 4).double(), nn.NLLLoss(), 0.005

    def train(category: Tensor, line: Tensor) -> tuple[Tensor, Tensor]:
        hidden = rnn.init_hidden()
        rnn.zero_grad()
        for i in range(line.size()[0]):
            output, hidden = rnn(line[i], hidden)
        loss = criterion(output, category)
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-rate)
        return output.detach(), loss.detach()

    lines = [functional.one_hot(torch.randint(12, (5, 1)), 12).double() for _ in range(CALLS)]
    return Training(train, [(classes(4, 1), line) for line in lines], [rnn])


class NameGenerator(nn.Module):
    """A category beside each letter; without its dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.i2h, self.i2o = nn.Linear(4 + 12 + 8, 8), nn.Linear(4 + 12 + 8, 12)
        self.o2o, self.softmax = nn.Linear(8 + 12, 12), nn.LogSoftmax(dim=1)

    def forward(self, category: Tensor, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        combined = torch.cat((category, x, hidden), 1)
        hidden, output = self.i2h(combined), self.i2o(combined)
        return self.softmax(self.o2o(torch.cat((hidden, output), 1))), hidden


@published
def names_generated() -> Training:
    """A sum of losses that begins with a tensor."""
    rnn, criterion, rate = NameGenerator().double(), nn.NLLLoss(), 0.0005

    def train(category: Tensor, line: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        target.unsqueeze_(-1)
        hidden = torch.zeros(1, 8, dtype=torch.float64)
        rnn.zero_grad()
        loss = torch.Tensor([0]).double()
        for i in range(line.size(0)):
            output, hidden = rnn(category, line[i], hidden)
            loss += criterion(output, target[i])
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-rate)
        return output.detach(), (loss / line.size(0)).detach()

    def batch() -> tuple[Tensor, ...]:
        hot = functional.one_hot
        line = hot(torch.randint(12, (5, 1)), 12).double()
        return hot(torch.randint(4, (1,)), 4).double(), line, torch.randint(12, (5,))

    return Training(train, [batch() for _ in range(CALLS)], [rnn])


class WordModel(nn.Module):
    """Of the example of word language models."""

    def __init__(self, tied: bool = True) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.encoder = nn.Embedding(WORDS, 8)
        self.rnn = nn.GRU(8, 8, 2, dropout=0.0)
        self.decoder = nn.Linear(8, WORDS)
        if tied:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        output, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        decoded = self.decoder(self.drop(output)).view(-1, WORDS)
        return functional.log_softmax(decoded, dim=1), hidden


@published
def word_language_model() -> Training:
    """Hidden values are carried from batch to batch; an update by hand, clipped."""
    model, criterion = WordModel().double(), nn.NLLLoss()

    def step(data: Tensor, targets: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        model.train()
        model.zero_grad()
        hidden = hidden.detach()
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-2.0)
        return loss.detach(), hidden.detach()

    def batch() -> tuple[Tensor, ...]:
        return words(2, 5), torch.randint(3, WORDS, (10,)), doubles(2, 2, 8)

    return Training(step, [batch() for _ in range(CALLS)], [model])


class VAE(nn.Module):
    """Of the example; what is drawn is handed over."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(64, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.fc3, self.fc4 = nn.Linear(4, 16), nn.Linear(16, 64)

    def forward(self, x: Tensor, eps: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        h1 = functional.relu(self.fc1(x.view(-1, 64)))
        mu, logvar = self.fc21(h1), self.fc22(h1)
        std = torch.exp(0.5 * logvar)
        z = mu + (torch.randn_like(std) if eps is None else eps) * std
        return torch.sigmoid(self.fc4(functional.relu(self.fc3(z)))), mu, logvar


def _elbo(m: nn.Module, x: Tensor, eps: Tensor | None = None) -> Tensor:
    found, mu, logvar = m(x, eps)
    bce = functional.binary_cross_entropy(found, x.view(-1, 64), reduction="sum")
    return bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())


@published
def vae() -> Training:
    """A likelihood and a divergence, as sums."""
    return fit(VAE(), _elbo, lambda: (torch.rand(4, 1, 8, 8), torch.randn(4, 4)))


@published
def vae_drawn() -> Training:
    """The same, which draws its numbers."""
    return fit(VAE(), _elbo, lambda: (torch.rand(4, 1, 8, 8),), tolerance=None)


class Policy(nn.Module):
    """Of the example of actors and critics."""

    def __init__(self) -> None:
        super().__init__()
        self.affine1, self.action_head = nn.Linear(4, 8), nn.Linear(8, 2)
        self.value_head = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.relu(self.affine1(x))
        return functional.softmax(self.action_head(x), dim=-1), self.value_head(x)


@published
def actor_critic() -> Training:
    """One episode: the advantage is the number of a value, and losses are lists."""
    model = Policy().double()
    optimizer = adamw(model.parameters())

    def finish_episode(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        policy_losses, value_losses, returns = [], [], []
        saved = []
        for state, action in zip(states, actions, strict=True):
            probs, state_value = model(state)
            m = torch.distributions.Categorical(probs)
            saved.append((m.log_prob(action), state_value))
        total: Any = 0
        for r in rewards.flip(0):
            total = r + 0.99 * total
            returns.insert(0, total)
        returns = torch.stack(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        for (log_prob, value), wanted in zip(saved, returns, strict=True):
            advantage = wanted - value.item()
            policy_losses.append(-log_prob * advantage)
            value_losses.append(functional.smooth_l1_loss(value, wanted.unsqueeze(0)))
        optimizer.zero_grad()
        loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    batches = [(doubles(5, 4), classes(2, 5), doubles(5)) for _ in range(CALLS)]
    return Training(finish_episode, batches, [model])


class ContentLoss(nn.Module):
    """Keeps a target and, of each call, its loss."""

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.target = target.detach()

    def forward(self, x: Tensor) -> Tensor:
        self.loss = functional.mse_loss(x, self.target)
        return x


def gram_matrix(x: Tensor) -> Tensor:
    """Products of features."""
    a, b, c, d = x.size()
    features = x.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    """The same for products of features."""

    def __init__(self, target: Tensor) -> None:
        super().__init__()
        self.target = gram_matrix(target).detach()

    def forward(self, x: Tensor) -> Tensor:
        self.loss = functional.mse_loss(gram_matrix(x), self.target)
        return x


@published
def neural_style() -> Training:
    """An image is optimised; losses stand between the layers of a network."""
    one, two = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
    content, style = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
    of_style = StyleLoss(one(style))
    features = functional.relu(one(content))
    of_content = ContentLoss(two(features))
    model = nn.Sequential(one, of_style, nn.ReLU(), two, of_content).double()
    of_style.target, of_content.target = of_style.target.double(), of_content.target.double()
    model.eval().requires_grad_(False)
    image = nn.Parameter(content.double())
    holder = nn.ParameterList([image])
    optimizer = torch.optim.Adam([image], lr=0.01, eps=1e-4)

    def step() -> Tensor:
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        model(image)
        loss = 1e6 * of_style.loss + of_content.loss
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, [() for _ in range(CALLS)], [model, holder])


class SpatialTransformer(nn.Module):
    """Of the tutorial, for images of 12; samples do not begin on pixels, where slopes jump."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.fc1 = nn.Conv2d(1, 4, kernel_size=5), nn.Linear(4 * 4 * 4, 5)
        self.localization = nn.Sequential(
            nn.Conv2d(1, 4, kernel_size=5), nn.MaxPool2d(2, stride=2), nn.ReLU(True)
        )
        self.fc_loc = nn.Sequential(nn.Linear(4 * 4 * 4, 6), nn.ReLU(True), nn.Linear(6, 6))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([0.9, 0.1, 0, 0, 1.1, 0.1]))

    def stn(self, x: Tensor) -> Tensor:
        xs = self.localization(x)
        theta = self.fc_loc(xs.view(-1, 4 * 4 * 4)).view(-1, 2, 3)
        grid = functional.affine_grid(theta, x.size(), align_corners=False)
        return functional.grid_sample(x, grid, align_corners=False)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(functional.max_pool2d(self.conv1(self.stn(x)), 2))
        return functional.log_softmax(self.fc1(x.view(-1, 4 * 4 * 4)), dim=1)


@published
def spatial_transformer() -> Training:
    """A grid that a network bends."""
    return fit(
        SpatialTransformer(),
        lambda m, x, y: functional.nll_loss(m(x), y),
        lambda: (images(12, 1, 4), classes(5, 4)),
        lambda p: torch.optim.SGD(p, lr=0.01),
    )


@published
def super_resolution() -> Training:
    """Pixels from channels, and orthogonal weights."""
    layers = [nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2)), nn.ReLU()]
    layers += [nn.Conv2d(8, 4, (3, 3), (1, 1), (1, 1)), nn.ReLU()]
    last = nn.Conv2d(4, 3**2, (3, 3), (1, 1), (1, 1))
    nn.init.orthogonal_(last.weight)
    return fit(
        nn.Sequential(*layers, last, nn.PixelShuffle(3)),
        lambda m, x, y: functional.mse_loss(m(x), y),
        lambda: (images(6, 1), images(18, 1)),
    )


class Siamese(nn.Module):
    """Both images through one network; of the example."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.fc = nn.Sequential(nn.Linear(128, 8), nn.ReLU(inplace=True), nn.Linear(8, 1))

    def forward_once(self, x: Tensor) -> Tensor:
        output = self.net(x)
        return output.view(output.size()[0], -1)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        output = torch.cat((self.forward_once(a), self.forward_once(b)), 1)
        return torch.sigmoid(self.fc(output))


@published
def siamese() -> Training:
    """Whether two images show the same."""
    return fit(
        Siamese(),
        lambda m, a, b, y: nn.BCELoss()(m(a, b).squeeze(), y),
        lambda: (images(8, 1, 4), images(8, 1, 4), torch.randint(2, (4,)).float()),
        lambda p: torch.optim.Adadelta(p, lr=1.0),
    )


@published
def forward_forward() -> Training:
    """Each layer has an optimizer and a loss of its own; of the example of Hinton's algorithm."""
    layers = [nn.Linear(12, 8).double(), nn.Linear(8, 8).double()]
    optimizers = [torch.optim.Adam(layer.parameters(), lr=0.03, eps=1e-4) for layer in layers]

    def goes(layer: nn.Linear, x: Tensor) -> Tensor:
        direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return functional.relu(torch.mm(direction, layer.weight.T) + layer.bias.unsqueeze(0))

    def step(positive: Tensor, negative: Tensor) -> Tensor:
        for layer, optimizer in zip(layers, optimizers, strict=True):
            good = goes(layer, positive).pow(2).mean(1)
            bad = goes(layer, negative).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([-good + 1.5, bad - 1.5]))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            positive, negative = goes(layer, positive).detach(), goes(layer, negative).detach()
        return loss.detach()

    return Training(step, [(doubles(4, 12), doubles(4, 12)) for _ in range(CALLS)], layers)


@published
def polynomial() -> Training:
    """The first example of all: gradients of four numbers, and an update without an optimizer."""
    a, b, c, d = (torch.randn((), dtype=torch.float64, requires_grad=True) for _ in range(4))
    rate = 1e-6

    def step(x: Tensor, y: Tensor) -> Tensor:
        y_pred = a + b * x + c * x**2 + d * x**3
        loss = (y_pred - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for each in (a, b, c, d):
                each -= rate * each.grad
                each.grad = None
        return loss.detach()

    x = torch.linspace(-math.pi, math.pi, 50, dtype=torch.float64)
    holder = nn.ParameterList([])
    for each in (a, b, c, d):
        holder.register_buffer(f"x{len(list(holder.buffers()))}", each)
    return Training(step, [(x, torch.sin(x)) for _ in range(CALLS)], [holder])


class LegendrePolynomial3(torch.autograd.Function):
    """A function with a derivative by hand."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 0.5 * (5 * x**3 - 3 * x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * x**2 - 1)


@published
def legendre() -> Training:
    """A derivative that is written by hand."""

    def loss_of(m: nn.ParameterList, x: Tensor, y: Tensor) -> Tensor:
        a, b, c, d = m
        return (a + b * LegendrePolynomial3.apply(c + d * x) - y).pow(2).sum()

    x = torch.linspace(-math.pi, math.pi, 50)
    made = nn.ParameterList([nn.Parameter(torch.full((), v)) for v in (0.0, -1.0, 0.0, 0.3)])
    return fit(made, loss_of, lambda: (x, torch.sin(x)), lambda p: torch.optim.SGD(p, lr=5e-6))
