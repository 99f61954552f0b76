"""Values that are shown as text or HTML by functions which a higher package sets."""

from collections.abc import Callable
from typing import Any, ClassVar


class Displayed:
    """A value that does not know its writers: `shown_by` sets them; without them, the representation is shown."""

    __slots__ = ()
    _text: ClassVar[Callable[[Any], str] | None] = None
    _html: ClassVar[Callable[[Any], str] | None] = None

    @classmethod
    def shown_by(cls, *, text: Callable[[Any], str] | None = None, html: Callable[[Any], str] | None = None) -> None:
        """Set what writes instances of this class as text and, in a notebook, as HTML."""
        cls._text, cls._html = text, html

    def __str__(self) -> str:
        """The text, as `print` shows it."""
        text = type(self)._text
        return repr(self) if text is None else text(self)

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None lets it show the representation."""
        html = type(self)._html
        return None if html is None else html(self)
