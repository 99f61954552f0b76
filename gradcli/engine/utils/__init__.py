"""The namespace that programs import `hooks` from."""

from . import hooks as hooks
