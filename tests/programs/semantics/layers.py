"""Programs on pooling, padding, resampling and recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.programs.semantics.table import case, caught, plain


def _drawn(t: Any, *shape: int, seed: int = 0) -> Any:
    return t.tensor(np.random.default_rng(seed).normal(size=shape))


def _with_gradients(t: Any, function: Any, *tensors: Any, twice: bool = True) -> Any:
    """Return the outputs of a function, and the first and second derivatives of a number made of them."""
    points = [tensor.clone().requires_grad_() for tensor in tensors]
    found = function(*points)
    outputs = [entry for entry in (found if isinstance(found, tuple) else (found,)) if entry.is_floating_point()]
    total = sum((output * output.cos()).sum() for output in outputs)
    first = t.autograd.grad(total, points, create_graph=True)
    if not twice:
        return [plain(list(outputs)), plain(list(first))]
    second = t.autograd.grad(sum((g * g).sum() for g in first), points)
    return [plain(list(outputs)), plain(list(first)), plain(list(second))]


@case
def pools(t: Any) -> Any:
    f, line, image = t.nn.functional, _drawn(t, 2, 3, 7), _drawn(t, 1, 2, 5, 6)
    volume = _drawn(t, 1, 1, 3, 4, 3)
    calls = [
        (lambda x: f.max_pool2d(x, 2, 1, 1), image),
        (lambda x: f.max_pool2d(x, 2, stride=2, ceil_mode=True), image),
        (lambda x: f.max_pool2d(x, (2, 1), dilation=(2, 1)), image),
        (lambda x: f.max_pool1d(x, 3, 2, 1, 1, True), line),
        (lambda x: f.max_pool3d(x, 2), volume),
        (lambda x: f.avg_pool2d(x, 2, 2, 1, True), image),
        (lambda x: f.avg_pool2d(x, 3, 2, 1, True, False), image),
        (lambda x: f.avg_pool2d(x, 2, divisor_override=3), image),
        (lambda x: f.avg_pool1d(x, 2, 3, 1, True), line),
        (lambda x: f.avg_pool3d(x, 2, 1), volume),
        (lambda x: f.avg_pool2d(x[0], 2), image),
        (lambda x: f.adaptive_avg_pool1d(x, 3), line),
        (lambda x: f.adaptive_avg_pool2d(x, (2, None)), image),
        (lambda x: f.adaptive_max_pool2d(x, 2), image),
        (lambda x: f.lp_pool2d(x.exp(), 3, 2), image),
        (lambda x: f.unfold(x, 2, dilation=2, padding=1, stride=(1, 2)), image),
        (lambda x: f.fold(x, (4, 5), (2, 3), padding=1, stride=2), _drawn(t, 2, 12, 9)),
        (lambda x: f.local_response_norm(x, 3), image),
        (lambda x: f.channel_shuffle(x, 2), image),
    ]
    values, places = f.max_pool2d(image, 2, 2, 1, return_indices=True)
    return [
        [_with_gradients(t, call, x) for call, x in calls if call is not calls[-2][0]],
        plain(calls[-2][0](image)),
        [plain(values), plain(places)],
        caught(lambda: f.max_pool2d(image, 2, 2, 2), words=False),
        caught(lambda: f.fold(_drawn(t, 1, 12, 5), (4, 5), (2, 3)), words=False),
    ]


@case
def pads_and_sizes(t: Any) -> Any:
    f, image = t.nn.functional, _drawn(t, 1, 2, 4, 3)
    calls = [
        *(lambda x, mode=mode: f.pad(x, (2, 1, 1, 2), mode) for mode in ("reflect", "replicate", "circular")),
        lambda x: f.pad(x, (1, -1), value=2.0),
        lambda x: f.interpolate(x, scale_factor=2),
        lambda x: f.interpolate(x, size=(3, 5)),
        lambda x: f.interpolate(x, size=(3, 5), mode="bilinear"),
        lambda x: f.interpolate(x, size=(7, 2), mode="bilinear", align_corners=True),
        lambda x: f.interpolate(x, scale_factor=(1.5, 2.5), mode="bilinear"),
        lambda x: f.interpolate(x, size=2, mode="area"),
        lambda x: f.interpolate(x[0], size=5, mode="linear"),
    ]
    return [
        *(_with_gradients(t, call, image) for call in calls),
        caught(lambda: f.pad(image, (5, 0, 0, 0), "reflect"), words=False),
        caught(lambda: f.interpolate(image, 2, 2.0), words=False),
    ]


@case
def images_read_at_places(t: Any) -> Any:
    f = t.nn.functional
    image, theta = _drawn(t, 2, 2, 3, 4), _drawn(t, 2, 2, 3, seed=1)
    found = []
    for mode in ("bilinear", "nearest"):
        for outside in ("zeros", "border"):
            for align in (True, False):
                grid = f.affine_grid(theta, (2, 2, 3, 2), align_corners=align).requires_grad_()
                read = f.grid_sample(image.clone().requires_grad_(), grid, mode, outside, align)
                found.append(plain([read, *t.autograd.grad((read * read).sum() + grid.sum() * 0, grid)]))
    return found


@case
def convolutions_of_more_kinds(t: Any) -> Any:
    t.manual_seed(0)
    layers = [
        (t.nn.Conv1d(2, 2, 3, padding=1, padding_mode="reflect"), (1, 2, 5)),
        (t.nn.Conv2d(2, 2, 3, padding="same", padding_mode="circular"), (1, 2, 4, 4)),
        (t.nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3)),
        (t.nn.Conv2d(2, 2, 1, dtype=t.float64), (1, 2, 2, 2)),
    ]
    found: list[Any] = []
    for number, (layer, shape) in enumerate(layers):
        layer.double()
        with t.no_grad():
            for place, parameter in enumerate(layer.parameters()):
                parameter.copy_(_drawn(t, *parameter.shape, seed=place + number))
        found.append([repr(layer), _with_gradients(t, layer, _drawn(t, *shape))])
    weight, image, cotangent = _drawn(t, 2, 1, 2, 2), _drawn(t, 1, 2, 3, 3), _drawn(t, 1, 2, 1, 1)
    return [
        found,
        plain(t.nn.grad.conv2d_input((1, 2, 3, 3), weight, cotangent, stride=2, groups=2)),
        plain(t.nn.grad.conv2d_weight(image, (2, 1, 2, 2), cotangent, stride=2, groups=2)),
        plain(t.conv2d(image, weight, groups=2)),
    ]


@case
def recurrent_layers(t: Any) -> Any:
    layers = [
        t.nn.LSTM(2, 3, num_layers=2, batch_first=True),
        t.nn.GRU(2, 3, bidirectional=True),
        t.nn.RNN(2, 3, nonlinearity="relu", bias=False),
        t.nn.LSTM(2, 3, num_layers=2, bidirectional=True),
    ]
    found: list[Any] = []
    for layer in layers:
        layer.double()
        with t.no_grad():
            for place, parameter in enumerate(layer.parameters()):
                parameter.copy_(_drawn(t, *parameter.shape, seed=place))
        x = _drawn(t, 4, 2, 2).requires_grad_()
        output, last = layer(x)
        again, _ = layer(x, last)
        flat, _ = layer(x[:, 0])
        (gradient,) = t.autograd.grad((again * output.cos()).sum(), x)
        names = [name for name, _ in layer.named_parameters()]
        found.append([repr(layer), names, plain([output, again, flat, gradient]), plain(last)])
    return found


@case
def normalised(t: Any) -> Any:
    x = _drawn(t, 3, 2, 2, 2)
    mean_of_all = t.nn.BatchNorm2d(2, momentum=None).double()
    mean_of_all(x)
    mean_of_all(x * 2)
    instance = t.nn.InstanceNorm2d(2, affine=True).double()
    before = plain(mean_of_all.running_var)
    mean_of_all.reset_running_stats()
    return [
        before,
        plain(mean_of_all.running_mean),
        plain([instance(x), instance(x[0])]),
        plain(t.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)),
        plain(t.layer_norm(x, (2,))),
        caught(lambda: t.nn.BatchNorm2d(2)(t.ones(2, 2))),
        caught(lambda: t.nn.BatchNorm1d(3)(t.ones(1, 3))),
        caught(lambda: t.nn.Dropout(2.0)),
    ]


@case
def rarer_losses(t: Any) -> Any:
    f, x = t.nn.functional, _drawn(t, 4, 3)
    right = t.tensor([0, 2, 1, 1])
    several = (x > 0).double().flip(0)
    weight = t.tensor([1.0, 2.0, 0.5], dtype=t.float64)
    return [
        _with_gradients(t, lambda y: f.multi_margin_loss(y, right, margin=0.7, weight=weight), x, twice=False),
        plain(f.multi_margin_loss(x, right, p=2, reduction="none")),
        _with_gradients(t, lambda y: f.multilabel_soft_margin_loss(y, several, weight), x),
        plain(f.multilabel_soft_margin_loss(x, several, reduction="none")),
    ]


@case
def layers_as_they_print(t: Any) -> Any:
    nn = t.nn
    return [
        repr(layer)
        for layer in (
            nn.MaxPool1d(2), nn.MaxPool2d(2, 1), nn.AvgPool1d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((2, None)),
            nn.AdaptiveMaxPool1d(2), nn.ZeroPad2d(1), nn.ReflectionPad2d((1, 2, 1, 0)), nn.ConstantPad1d(1, 0.5),
            nn.ReplicationPad1d(2), nn.CircularPad2d(1), nn.Upsample(scale_factor=2),
            nn.Upsample(size=3, mode="linear"),
            nn.Unfold(2), nn.Fold((4, 4), 2), nn.Dropout2d(), nn.Dropout1d(0.1), nn.AlphaDropout(), nn.Softmax2d(),
            nn.CosineSimilarity(), nn.PixelUnshuffle(2), nn.BatchNorm3d(2), nn.InstanceNorm2d(2), nn.LPPool2d(2, 2),
            nn.Conv2d(1, 1, 1, padding_mode="circular", padding=1), nn.GroupNorm(1, 2),
        )
    ]  # fmt: skip


@case
def drawn_at_random(t: Any) -> Any:
    x = t.ones(4, 100, 2, 2, dtype=t.float64)
    dropped = t.nn.functional.dropout2d(x, 0.5)
    whole = bool(((dropped == 0).all((2, 3)) | (dropped == 2).all((2, 3))).all())
    hard = t.nn.functional.gumbel_softmax(x[:, :3, 0, 0], hard=True)
    drawn = t.multinomial(t.tensor([0.0, 1.0, 3.0]), 50, replacement=True)
    truncated = t.nn.init.trunc_normal_(t.empty(500), std=2.0)
    filled = t.nn.init.dirac_(t.empty(4, 2, 3), groups=2)
    return [
        whole,
        sorted(set(plain(dropped.flatten()))),
        plain(hard.sum(-1)),
        sorted(set(plain(drawn))),
        bool((truncated.abs() <= 2).all()),
        plain(filled),
        plain((t.nn.init.sparse_(t.empty(4, 3), 0.5) == 0).sum(0)),
        bool((t.empty(100).exponential_() >= 0).all()),
        bool((t.empty(100).random_(3, 5) >= 3).all()),
    ]


@case
def padding_that_keeps_the_length(t: Any) -> Any:
    f = t.nn.functional
    line, image = _drawn(t, 1, 2, 5), _drawn(t, 1, 1, 4, 5)
    return [
        _with_gradients(t, lambda x, w: f.conv1d(x, w, padding="same"), line, _drawn(t, 2, 2, 2)),
        _with_gradients(t, lambda x, w: f.conv2d(x, w, padding="same"), image, _drawn(t, 1, 1, 2, 3)),
        _with_gradients(t, lambda x, w: f.conv1d(x, w, padding="same", dilation=3), line, _drawn(t, 1, 2, 2)),
        caught(lambda: f.conv1d(line, _drawn(t, 2, 2, 2), padding="same", stride=2), words=False),
    ]


@case
def smoothed_labels(t: Any) -> Any:
    f, x, target = t.nn.functional, _drawn(t, 4, 3), t.tensor([0, 2, 1, -100])
    weight, image = t.tensor([1.0, 2.0, 0.5], dtype=t.float64), _drawn(t, 2, 3, 2)
    places = t.tensor([[0, 2], [1, -100]])
    found = []
    for reduction in ("mean", "sum", "none"):
        for factors in (None, weight):
            options = {"weight": factors, "reduction": reduction, "label_smoothing": 0.2}
            found.append(_with_gradients(t, lambda y, o=options: f.cross_entropy(y, target, **o), x))
            found.append(_with_gradients(t, lambda y, o=options: f.cross_entropy(y, places, **o), image))
    return [found, caught(lambda: f.cross_entropy(x, target[:2]))]


@case
def activations_in_place(t: Any) -> Any:
    nn, x = t.nn, _drawn(t, 5)
    found = []
    for layer in (nn.SiLU, nn.Mish, nn.ReLU6, nn.SELU, nn.CELU, nn.ELU, nn.Hardtanh, nn.LeakyReLU, nn.ReLU):
        start = x.clone().requires_grad_()
        before = start * 1
        after = layer(inplace=True)(before)
        (gradient,) = t.autograd.grad(after.sum(), start)
        found.append([after is before, plain(after), plain(gradient)])
    table = nn.Embedding.from_pretrained(_drawn(t, 3, 2))
    return [
        found,
        [repr(nn.SiLU()), repr(nn.SELU(inplace=True)), repr(nn.Hardtanh())],
        [plain(table(t.tensor([2, 0]))), table.weight.requires_grad],
        caught(lambda: table(t.tensor([0.5])), words=False),
        plain([t.logit(t.tensor([0.0, 0.3, 1.0], dtype=t.float64), 0.1), t.xlogy(x, 2.0)]),
    ]
