"""Errors a user can act on, each with the exit code of the command."""

import difflib
from collections.abc import Iterable

MOST_LISTED = 12
"""Names an error lists when none is near."""


class AttnproofError(Exception):
    """Base of every error shown as one sentence instead of a traceback. Exit code 2."""

    exit_code = 2


class RequestError(AttnproofError):
    """The request is wrong: an unknown name, a malformed value, a file that cannot be read."""


class EnvironmentProblem(AttnproofError):
    """The machine lacks something the request needs: an engine, a package, an interpreter."""


class SearchEnded(AttnproofError):
    """A search ended within its budget without an answer; says what was tried. Exit code 3 (undecided)."""

    exit_code = 3


class ClaimFileError(AttnproofError):
    """A claim's file is broken: it defines no claim, or raises while its evidence is built."""


class ResultFileError(AttnproofError):
    """A result file is cut off, edited, of a newer schema, or not a result file."""


def unknown_name(what: str, given: str, known: Iterable[str]) -> RequestError:
    """The error for a name that is not known: says which names are near, or lists some.

    Args:
        what: the kind of thing asked for, e.g. ``"claim"``.
        given: the name the user wrote.
        known: every name that would have been accepted.
    """
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    listed = names if len(names) <= MOST_LISTED else [*names[:MOST_LISTED], f"… ({len(names)} in all)"]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(listed)}"
    return RequestError(f"unknown {what} {given!r}; {hint}")
