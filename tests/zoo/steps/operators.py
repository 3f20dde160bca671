"""Steps of published code: habits of training, operators of one's own, and pictures."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.others import doubles, mlp
from zoo.steps.table import CALLS, Training, adamw, classes, fit, images, published


class _Reversed(torch.autograd.Function):
    """The same forward; gradients turn round."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0].neg() * ctx.scale, None


@published
def domains() -> Training:
    """A classifier of domains from which the features hide (DANN)."""
    module = nn.ModuleDict({"body": mlp(5, 8, 6), "label": mlp(6, 4), "domain": mlp(6, 5, 2)})

    def loss_of(m: nn.Module, x: Tensor, y: Tensor, other: Tensor) -> Tensor:
        a, b = m["body"](x), m["body"](other)
        loss = functional.nll_loss(m["label"](a).log_softmax(1), y)
        found = m["domain"](_Reversed.apply(torch.cat([a, b]), 0.3))
        where = torch.cat([torch.zeros(len(a)), torch.ones(len(b))]).long()
        return loss + functional.cross_entropy(found, where)

    return fit(module, loss_of, lambda: (doubles(5, 5), classes(4, 5), doubles(4, 5)))


class _Sign(torch.autograd.Function):
    """Signs forward; the gradient passes where the value is small."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        passed = gradients[0].clone()
        passed[x.abs() > 1] = 0
        return passed


@published
def binary_weights() -> Training:
    """Weights of one bit, whose real ones are clamped behind each step."""

    class Binary(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return functional.linear(x, _Sign.apply(self.weight), self.bias)

    module = nn.Sequential(Binary(6, 8), nn.BatchNorm1d(8), nn.Hardtanh(), Binary(8, 3)).double()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, eps=1e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2], gamma=0.5)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.multi_margin_loss(module(x), y)
        loss.backward()
        optimizer.step()
        for p in module.parameters():
            p.data.clamp_(-1, 1)
        return loss.detach()

    batches = [(doubles(6, 6), classes(3, 6)) for _ in range(CALLS)]
    return Training(step, batches, [module], after=schedule.step)


@published
def few_pictures() -> Training:
    """Few pictures of each class: means, and distances to them."""
    module = nn.Sequential(
        nn.Conv2d(3, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    )

    def loss_of(m: nn.Module, shown: Tensor, asked: Tensor) -> Tensor:
        ways, shots = shown.shape[:2]
        z = m(torch.cat([shown.flatten(0, 1), asked.flatten(0, 1)]))
        means = z[: ways * shots].view(ways, shots, -1).mean(1)
        gaps = torch.pow(z[ways * shots :].unsqueeze(1) - means.unsqueeze(0), 2).sum(2)
        logs = functional.log_softmax(-gaps, dim=1).view(ways, asked.shape[1], -1)
        wanted = torch.arange(ways).view(ways, 1, 1).expand(ways, asked.shape[1], 1)
        return -logs.gather(2, wanted).squeeze().view(-1).mean()

    return fit(module, loss_of, lambda: (torch.randn(3, 2, 3, 6, 6), torch.randn(3, 2, 3, 6, 6)))


@published
def hardest_of_batch() -> Training:
    """The farthest of a person and the nearest of others, among all pairs of a batch."""

    def loss_of(m: nn.Module, x: Tensor, who: Tensor) -> Tensor:
        z = functional.normalize(m(x))
        squares = torch.pow(z, 2).sum(dim=1, keepdim=True).expand(len(z), len(z))
        gaps = squares + squares.t()
        gaps = gaps.addmm(z, z.t(), beta=1, alpha=-2).clamp(min=1e-12).sqrt()
        same = who.expand(len(z), len(z)).eq(who.expand(len(z), len(z)).t())
        far = torch.where(same, gaps, -1.0).max(1)[0]
        near = torch.where(same, 1e9, gaps).min(1)[0]
        return functional.margin_ranking_loss(near, far, torch.ones_like(near), margin=0.3)

    return fit(mlp(5, 8, 4), loss_of, lambda: (doubles(6, 5), torch.arange(6) // 2))


@published
def ensemble() -> Training:
    """Several models as one, by `torch.func` and `vmap`."""
    models = [mlp(4, 6, 2).double() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)  # type: ignore[arg-type]
    base = copy.deepcopy(models[0]).to("meta")
    module = nn.ParameterDict(
        {k.replace(".", "_"): nn.Parameter(v.detach()) for k, v in parameters.items()}
    )
    optimizer = adamw(module.parameters())

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        named = {k: module[k.replace(".", "_")] for k in parameters}
        called = lambda p, b, x: torch.func.functional_call(base, (p, b), (x,))  # noqa: E731
        found = torch.vmap(called, in_dims=(0, 0, None))(named, buffers, x)
        loss = functional.mse_loss(found, y.expand_as(found))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(step, [(doubles(5, 4), doubles(5, 2)) for _ in range(CALLS)], [module])


@published
def equilibrium() -> Training:
    """A layer that is called until it stays, and a gradient through its last call."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 6)
            self.a, self.b = nn.LayerNorm(8), nn.LayerNorm(6)

        def forward(self, z: Tensor, x: Tensor) -> Tensor:
            return self.b(
                functional.relu(z + x + self.second(self.a(functional.relu(self.first(z)))))
            )

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(8):
                z = 0.5 * z + 0.5 * m(z, x)
        return functional.huber_loss(m(z, x), y)

    return fit(Layer(), loss_of, lambda: (doubles(4, 6), doubles(4, 6)))


@published
def mixed_densities() -> Training:
    """Weights, means and scales of Gaussians, with torch's mixtures."""
    from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        share, mean, scale = m(x).view(len(x), 3, 5).split([1, 2, 2], -1)
        kinds = Categorical(logits=share[..., 0], validate_args=False)
        parts = Independent(Normal(mean, scale.exp(), validate_args=False), 1, validate_args=False)
        return -MixtureSameFamily(kinds, parts, validate_args=False).log_prob(y).mean()

    return fit(
        mlp(3, 10, 15, act=nn.Tanh),
        loss_of,
        lambda: (doubles(6, 3), doubles(6, 2)),
        optimizer=lambda p: torch.optim.Adamax(p, lr=2e-3, eps=1e-4),
    )


@published
def scaled_half() -> Training:
    """Pictures in bfloat16 with a scaler, in pieces of a batch, and one cycle of rates."""
    module = nn.Sequential(
        nn.Conv2d(3, 6, 3, 2, 1), nn.GroupNorm(2, 6), nn.SiLU(), nn.Flatten(), nn.Linear(96, 3)
    )
    optimizer = torch.optim.SGD(
        module.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=10)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)

    def step(x: Tensor, y: Tensor) -> Tensor:
        total = torch.zeros(())
        for piece, labels in zip(x.chunk(2), y.chunk(2), strict=True):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.cross_entropy(module(piece), labels) / 2
            scaler.scale(loss).backward()
            total = total + loss.detach()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return total

    batches = [(images(8, batch=4), classes(3, 4)) for _ in range(CALLS)]
    return Training(step, batches, [module], after=schedule.step, tolerance=2e-2)


@published
def unpooled() -> Training:
    """Places of maxima are handed from the encoder to the decoder (SegNet)."""

    class SegNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 5, 3, padding=1)
            self.norm, self.pool, self.unpool = (
                nn.BatchNorm2d(4),
                nn.MaxPool2d(2, 2, return_indices=True),
                nn.MaxUnpool2d(2, 2),
            )

        def forward(self, x: Tensor) -> Tensor:
            h, where = self.pool(functional.relu(self.norm(self.down(x))))
            return self.up(self.unpool(h, where))

    return fit(
        SegNet(),
        lambda m, x, y: functional.cross_entropy(
            m(x), y, weight=torch.linspace(0.5, 1.5, 5).double()
        ),
        lambda: (images(8), classes(5, 2, 8, 8)),
        optimizer=lambda p: torch.optim.Adadelta(p, lr=0.5, eps=1e-4),
    )


@published
def gated_unet() -> Training:
    """A U-Net whose skips pass gates; overlap of classes and crossed entropy (attention U-Net)."""

    class Gate(nn.Module):
        def __init__(self, a: int, b: int) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(a, 3, 1), nn.Conv2d(b, 3, 1)
            self.psi = nn.Sequential(nn.ReLU(), nn.Conv2d(3, 1, 1), nn.Sigmoid())

        def forward(self, g: Tensor, x: Tensor) -> Tensor:
            return x * self.psi(self.a(g) + self.b(x))

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
            self.up, self.gate, self.last = (
                nn.ConvTranspose2d(6, 4, 2, 2),
                Gate(4, 4),
                nn.Conv2d(8, 3, 1),
            )

        def forward(self, x: Tensor) -> Tensor:
            a = functional.relu(self.first(x))
            b = self.up(functional.relu(self.second(functional.max_pool2d(a, 2))))
            return self.last(torch.cat([self.gate(b, a), b], 1))

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        found = m(x)
        shares, wanted = (
            found.softmax(1),
            functional.one_hot(y, 3).permute(0, 3, 1, 2).to(found.dtype),
        )
        both, all_ = (shares * wanted).sum((0, 2, 3)), (shares + wanted).sum((0, 2, 3))
        return functional.cross_entropy(found, y) + 1 - ((2 * both + 1) / (all_ + 1)).mean()

    return fit(UNet(), loss_of, lambda: (images(8), classes(3, 2, 8, 8)))


@published
def boxes_of_cells() -> Training:
    """Boxes, objects and classes of cells, with overlaps (YOLO)."""
    module = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(6, 8, 3, 2, 1))

    def loss_of(m: nn.Module, x: Tensor, box: Tensor, there: Tensor, kind: Tensor) -> Tensor:
        found = m(x).permute(0, 2, 3, 1)
        xy, wh = found[..., :2].sigmoid(), found[..., 2:4].exp()
        low = torch.maximum(xy - wh / 2, box[..., :2] - box[..., 2:] / 2)
        high = torch.minimum(xy + wh / 2, box[..., :2] + box[..., 2:] / 2)
        shared = (high - low).clamp(min=0).prod(-1)
        overlap = shared / (wh.prod(-1) + box[..., 2:].prod(-1) - shared + 1e-9)
        mask = there.bool()
        of_boxes = (1 - overlap)[mask].sum() / mask.sum().clamp(min=1)
        of_objects = functional.binary_cross_entropy_with_logits(
            found[..., 4], there * overlap.detach().clamp(0)
        )
        kinds = functional.one_hot(kind, 3).to(found.dtype)
        of_kinds = functional.binary_cross_entropy_with_logits(
            found[..., 5:], kinds, reduction="none"
        )
        return 0.05 * of_boxes + of_objects + 0.5 * (of_kinds.mean(-1) * there).sum()

    def batch() -> tuple[Tensor, ...]:
        return (
            images(8),
            torch.rand(2, 2, 2, 4) + 0.1,
            torch.rand(2, 2, 2).round(),
            classes(3, 2, 2, 2),
        )

    return fit(module, loss_of, batch)


@published
def heat_on_a_plate() -> Training:
    """A physics-informed network of sines (SIREN), with weights of losses that learn."""

    class Sine(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sin(3 * x)

    module = nn.Sequential(nn.Linear(3, 8), Sine(), nn.Linear(8, 8), Sine(), nn.Linear(8, 1))
    module.logs = nn.Parameter(torch.zeros(2))

    def loss_of(m: nn.Module, inside: Tensor, rim: Tensor) -> Tensor:
        x = inside.detach().requires_grad_()
        u = m(x)
        du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        second = [
            torch.autograd.grad(du[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(2)
        ]
        residual = (du[:, 2] - 0.1 * (second[0] + second[1])).pow(2).mean()
        losses = torch.stack([residual, m(rim).pow(2).mean()])
        return (torch.exp(-m.logs) * losses + m.logs).sum()

    return fit(
        module,
        loss_of,
        lambda: (torch.rand(6, 3), torch.rand(4, 3)),
        optimizer=lambda p: torch.optim.Rprop(p, lr=1e-3),
    )


@published
def deep_operator() -> Training:
    """A branch for functions and a trunk for places (DeepONet), warm restarts of rates."""
    module = nn.ModuleDict(
        {"branch": mlp(6, 8, 5, act=nn.Tanh), "trunk": mlp(1, 8, 5, act=nn.Tanh)}
    )
    module.double()
    optimizer = adamw(module.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)

    def step(u: Tensor, y: Tensor, wanted: Tensor) -> Tensor:
        optimizer.zero_grad()
        found = torch.einsum("bp,np->bn", module["branch"](u), module["trunk"](y))
        loss = torch.linalg.vector_norm(found - wanted, dim=1).div(wanted.norm(dim=1)).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    batches = [(doubles(4, 6), doubles(5, 1), doubles(4, 5)) for _ in range(CALLS)]
    return Training(step, batches, [module], after=schedule.step)


@published
def hyper_network() -> Training:
    """A network that writes the weights of another."""
    module = nn.ModuleDict({"hyper": mlp(3, 8, 4 * 2 + 2), "code": nn.Embedding(5, 3)})

    def loss_of(m: nn.Module, task: Tensor, x: Tensor, y: Tensor) -> Tensor:
        made = m["hyper"](m["code"](task))
        weight, bias = made[:, :8].view(-1, 2, 4), made[:, 8:]
        return functional.mse_loss(torch.baddbmm(bias[:, None], x, weight.transpose(1, 2)), y)

    return fit(module, loss_of, lambda: (classes(5, 3), doubles(3, 6, 4), doubles(3, 6, 2)))


@published
def variance_and_covariance() -> Training:
    """VICReg: variances, covariances and distances of two views, with LARS by hand."""
    module = nn.Sequential(mlp(6, 10, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5)).double()
    momenta = {p: torch.zeros_like(p) for p in module.parameters()}

    def step(a: Tensor, b: Tensor) -> Tensor:
        x, y = module(a), module(b)
        loss = 25 * functional.mse_loss(x, y)
        for z in (x - x.mean(0), y - y.mean(0)):
            loss = loss + 12.5 * functional.relu(1 - torch.sqrt(z.var(0) + 1e-4)).mean()
            c = (z.T @ z) / (len(z) - 1)
            off = c.flatten()[:-1].view(4, 6)[:, 1:].flatten()
            loss = loss + off.pow(2).sum() / 5
        for p in module.parameters():
            p.grad = None
        loss.backward()
        with torch.no_grad():
            for p in module.parameters():
                g = p.grad + 1e-6 * p
                if p.ndim > 1:
                    size, other = p.norm(), g.norm()
                    q = torch.where(
                        size > 0.0, torch.where(other > 0, 0.001 * size / other, 1.0), 1.0
                    )
                    g = g.mul(q)
                momenta[p].mul_(0.9).add_(g)
                p.add_(momenta[p], alpha=-0.2)
        return loss.detach()

    return Training(step, [(doubles(6, 6), doubles(6, 6)) for _ in range(CALLS)], [module])
