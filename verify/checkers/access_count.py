"""Re-check what an attention layer keeps and moves while decoding, by doing it one number at a time.

Data: ``scheme`` with its ``sizes``: ``cache`` (``token``: numbers per token), ``window`` (``token``,
``window``), ``top-k`` (``token``, ``index``: numbers an indexer reads of every token, ``chosen``), ``pooled``
(``token``, ``block``, ``window`` ≥ block: a pooled entry per full block, the last tokens as they are),
``state`` (``state``: numbers). And ``runs``, each with ``prompt`` and ``generated`` tokens, ``branches`` (0:
the prompt is continued; n: it stays and n copies are continued, sharing what can be shared) and ``draft``
(tokens per pass over the store), with the stated numbers ``kept`` at the end, and ``read`` and ``written``
while generating.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.reading import Wrong, natural, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "access counter"
KINDS = frozenset({"access-count"})
SIZES = {
    "cache": {"token"},
    "window": {"token", "window"},
    "top-k": {"token", "index", "chosen"},
    "pooled": {"token", "block", "window"},
    "state": {"state"},
}
PASSES = {"cache", "state"}
"""Schemes of which several drafted tokens may share one pass; others choose what they read token by token."""
_LIMIT = 1 << 13
_MOVES = 1 << 21
_BRANCHES = 16

Entry = list[int]


def judge(obligation: Obligation) -> Check:
    """``proved`` when every stated count is the counted one."""
    return word(NAME, obligation, _check)


def _check(data: Mapping[str, Any]) -> str:
    scheme, given = data["scheme"], data["sizes"]
    if scheme not in SIZES or set(given) != SIZES[scheme]:
        raise IllFormed(f"{scheme!r} with {sorted(given)}: no scheme with such sizes")
    sizes = {name: natural(size) for name, size in given.items()}
    if not all(1 <= size <= _LIMIT for size in sizes.values()):
        raise IllFormed(f"sizes {sizes}: from 1 to {_LIMIT} are counted")
    if scheme == "pooled" and sizes["window"] < sizes["block"]:
        raise Wrong("a window shorter than a block loses tokens before they are pooled")
    runs = list(data["runs"])
    if not runs:
        raise Wrong("no run is stated")
    moved = sum(_run(scheme, sizes, run) for run in runs)
    return f"{len(runs)} runs, {moved} numbers moved one by one, all counts as stated"


def _run(scheme: str, sizes: Mapping[str, int], run: Mapping[str, Any]) -> int:
    prompt, generated, branches, draft = (
        natural(run[name]) for name in ("prompt", "generated", "branches", "draft")
    )
    if prompt + generated > _LIMIT or branches > _BRANCHES or draft == 0 or generated % draft:
        raise IllFormed(f"{prompt} and {generated} tokens, {branches} branches, passes of {draft}")
    if draft > 1 and scheme not in PASSES:
        raise IllFormed(f"{scheme} chooses what it reads token by token")
    root = _Store(scheme, sizes)
    for _ in range(prompt):
        root.take()
    root.read = root.written = 0
    stores = [root.copy() for _ in range(branches)] or [root]
    for store in stores:
        for _ in range(generated // draft):
            store.decode(draft)
    distinct = {id(entry): len(entry) for store in [root, *stores] for entry in store.entries()}
    counted = {
        "kept": sum(distinct.values()),
        "read": sum(store.read for store in stores),
        "written": sum(store.written for store in stores),
    }
    for name, number in counted.items():
        if natural(run[name]) != number:
            where = f"{prompt} tokens and {generated} more, {branches} branches, passes of {draft}"
            raise Wrong(f"{where}: {number} numbers {name}, not the stated {run[name]}")
    return counted["read"] + counted["written"]


class _Store:
    """What one sequence keeps; entries are never changed once written, except the state, which is copied."""

    def __init__(self, scheme: str, sizes: Mapping[str, int]) -> None:
        self.scheme, self.sizes = scheme, sizes
        self.tokens: list[Entry] = []
        self.pooled: list[Entry] = []
        self.indices: list[Entry] = []
        self.state: Entry = [0] * sizes.get("state", 0)
        self.seen = self.read = self.written = 0

    def entries(self) -> list[Entry]:
        return [*self.tokens, *self.pooled, *self.indices, self.state]

    def copy(self) -> "_Store":
        other = _Store(self.scheme, self.sizes)
        other.tokens, other.pooled = list(self.tokens), list(self.pooled)
        other.indices, other.seen = list(self.indices), self.seen
        return other

    def _fresh(self, size: int) -> Entry:
        self.written += size
        self._bounded(self.written)
        return [0] * size

    def take(self) -> None:
        """Write one token."""
        self.seen += 1
        if self.scheme == "state":
            self.state = self._fresh(self.sizes["state"])
            return
        self.tokens.append(self._fresh(self.sizes["token"]))
        if self.scheme == "top-k":
            self.indices.append(self._fresh(self.sizes["index"]))
        if self.scheme == "pooled" and self.seen % self.sizes["block"] == 0:
            self.pooled.append(self._fresh(self.sizes["token"]))
        if "window" in self.sizes and len(self.tokens) > self.sizes["window"]:
            del self.tokens[0]

    def decode(self, draft: int) -> None:
        """One pass: the tokens are written, and what they attend to is read once."""
        if self.scheme == "state":
            self._look(self.state)
            self.take()
            self.seen += draft - 1
            return
        for _ in range(draft):
            self.take()
        chosen = self.tokens[-self.sizes["chosen"] :] if self.scheme == "top-k" else self.tokens
        for entry in (*chosen, *self.pooled, *self.indices):
            self._look(entry)

    def _look(self, entry: Entry) -> None:
        self.read += sum(1 for _ in entry)
        self._bounded(self.read)

    def _bounded(self, moved: int) -> None:
        if moved > _MOVES:
            raise IllFormed("too many numbers to count one by one")
