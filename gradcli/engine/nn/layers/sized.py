"""Pooling and padding layers for one, two and three axes."""

from __future__ import annotations

from gradcli.engine.nn.layers.pooling import AdaptivePool, AvgPool, ConstantPad, MaxPool, Pad


class MaxPool1d(MaxPool):
    """The maximum of every window of [N, C, L]."""

    axes_count = 1


class AvgPool1d(AvgPool):
    """The mean of every window of [N, C, L]."""

    axes_count = 1


class AdaptiveAvgPool1d(AdaptivePool):
    """The means of a grid of cells of [N, C, L]."""

    axes_count = 1


class AdaptiveMaxPool1d(AdaptivePool):
    """The maxima of a grid of cells of [N, C, L]."""

    axes_count = 1
    largest = True


class ConstantPad1d(ConstantPad):
    """Padding of [N, C, L] with a constant."""

    axes_count = 1


class ZeroPad1d(Pad):
    """Padding of [N, C, L] with zeros."""

    axes_count = 1


class ReflectionPad1d(Pad):
    """Padding of [N, C, L] by reflection; the edge is not repeated."""

    axes_count = 1
    mode = "reflect"


class ReplicationPad1d(Pad):
    """Padding of [N, C, L] by repeating its edges."""

    axes_count = 1
    mode = "replicate"


class CircularPad1d(Pad):
    """Padding of [N, C, L] with the values from its other end."""

    axes_count = 1
    mode = "circular"


class MaxPool2d(MaxPool):
    """The maximum of every window of [N, C, H, W]."""

    axes_count = 2


class AvgPool2d(AvgPool):
    """The mean of every window of [N, C, H, W]."""

    axes_count = 2


class AdaptiveAvgPool2d(AdaptivePool):
    """The means of a grid of cells of [N, C, H, W]."""

    axes_count = 2


class AdaptiveMaxPool2d(AdaptivePool):
    """The maxima of a grid of cells of [N, C, H, W]."""

    axes_count = 2
    largest = True


class ConstantPad2d(ConstantPad):
    """Padding of [N, C, H, W] with a constant."""

    axes_count = 2


class ZeroPad2d(Pad):
    """Padding of [N, C, H, W] with zeros."""

    axes_count = 2


class ReflectionPad2d(Pad):
    """Padding of [N, C, H, W] by reflection; the edge is not repeated."""

    axes_count = 2
    mode = "reflect"


class ReplicationPad2d(Pad):
    """Padding of [N, C, H, W] by repeating its edges."""

    axes_count = 2
    mode = "replicate"


class CircularPad2d(Pad):
    """Padding of [N, C, H, W] with the values from its other end."""

    axes_count = 2
    mode = "circular"


class MaxPool3d(MaxPool):
    """The maximum of every window of [N, C, D, H, W]."""

    axes_count = 3


class AvgPool3d(AvgPool):
    """The mean of every window of [N, C, D, H, W]."""

    axes_count = 3


class AdaptiveAvgPool3d(AdaptivePool):
    """The means of a grid of cells of [N, C, D, H, W]."""

    axes_count = 3


class AdaptiveMaxPool3d(AdaptivePool):
    """The maxima of a grid of cells of [N, C, D, H, W]."""

    axes_count = 3
    largest = True


class ConstantPad3d(ConstantPad):
    """Padding of [N, C, D, H, W] with a constant."""

    axes_count = 3


class ZeroPad3d(Pad):
    """Padding of [N, C, D, H, W] with zeros."""

    axes_count = 3


class ReflectionPad3d(Pad):
    """Padding of [N, C, D, H, W] by reflection; the edge is not repeated."""

    axes_count = 3
    mode = "reflect"


class ReplicationPad3d(Pad):
    """Padding of [N, C, D, H, W] by repeating its edges."""

    axes_count = 3
    mode = "replicate"


class CircularPad3d(Pad):
    """Padding of [N, C, D, H, W] with the values from its other end."""

    axes_count = 3
    mode = "circular"
