"""The name of a kernel under test, as the user writes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from verify.model.errors import RequestError

_FORM = "write it as package.module:function or path/to/file.py:function"


@dataclass(frozen=True)
class Target:
    """A function in a module or in a file; it is imported by the worker, never here.

    Args:
        requested: the text the user wrote.
        location: dotted module name, or absolute path of a ``.py`` file.
        is_file: which of the two ``location`` is.
        attribute: dotted path of the function inside the module, e.g. ``"f.__wrapped__"``.
    """

    requested: str
    location: str
    is_file: bool
    attribute: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``package.module:function`` or ``path/to/file.py:function``.

        Raises:
            RequestError: the text has another form, or names a file that does not exist.
        """
        location, colon, attribute = text.rpartition(":")
        if not colon or not location or not attribute:
            raise RequestError(f"target {text!r} has no function after a colon; {_FORM}")
        if not all(part.isidentifier() for part in attribute.split(".")):
            raise RequestError(f"target {text!r}: {attribute!r} is not a function name; {_FORM}")
        if location.endswith(".py") or "/" in location or "\\" in location:
            path = Path(location).expanduser()
            if not path.is_file():
                raise RequestError(f"target {text!r}: there is no file {location!r}")
            return cls(text, str(path.resolve()), True, attribute)
        if not all(part.isidentifier() for part in location.split(".")):
            raise RequestError(f"target {text!r}: {location!r} is not a module name; {_FORM}")
        return cls(text, location, False, attribute)

    @property
    def function(self) -> str:
        """Name of the function in its module, without ``.__wrapped__`` and the like."""
        return self.attribute.split(".")[0]
