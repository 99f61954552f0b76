"""The names that programs import from `cuda.amp`."""

from gradcli.engine.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
