"""The namespace that programs import `hooks` from."""

from gradcli.engine.utils import hooks as hooks
