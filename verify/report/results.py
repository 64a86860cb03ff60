"""What a results folder holds: claim and kernel certificates, and the files that cannot be used."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from verify.model import certificate
from verify.model.errors import RequestError, ResultFileError


@dataclass(frozen=True)
class Broken:
    """A result file that was left out, by its path inside the results folder, and why."""

    file: str
    reason: str


@dataclass(frozen=True)
class Kernel:
    """A kernel certificate and the folder with its reproducer; ``slug`` is the folder's name."""

    slug: str
    folder: Path
    data: dict[str, Any]

    def reproducer(self) -> dict[str, bytes]:
        """The files of the reproducer that are there, by name; names that leave the folder are ignored."""
        named = self.data["reproducer"] or {}
        names = [named.get("script"), named.get("data")]
        inside = [name for name in names if isinstance(name, str) and Path(name).name == name]
        return {name: (self.folder / name).read_bytes() for name in inside if (self.folder / name).is_file()}


@dataclass(frozen=True)
class Results:
    """Everything in a results folder, in the order of the file names."""

    claims: tuple[dict[str, Any], ...]
    kernels: tuple[Kernel, ...]
    broken: tuple[Broken, ...]


def load(folder: Path) -> Results:
    """Read a results folder.

    Args:
        folder: holds ``claims/<id>.json`` and ``certify/<slug>/certificate.json``.

    Raises:
        RequestError: the folder is not there or holds no result file at all.
    """
    if not folder.is_dir():
        raise RequestError(f"the results folder {folder} does not exist; run `attnproof prove` first")
    claims: list[dict[str, Any]] = []
    kernels: list[Kernel] = []
    broken: list[Broken] = []
    for path in _files(folder):
        try:
            data = _read(path)
            if path.parent.name == "claims":
                claims.append(data)
            else:
                kernels.append(Kernel(path.parent.name, path.parent, data))
        except ResultFileError as problem:
            place = path.relative_to(folder).as_posix()
            why = str(problem).replace(str(path), "the file")
            if not path.exists() and (path.parent / certificate.JOURNAL).exists():
                why = "the certification is not finished: run it again with --resume"
            broken.append(Broken(place, why))
    if not claims and not kernels and not broken:
        raise RequestError(
            f"{folder} holds no results (claims/*.json or certify/*/certificate.json);"
            " run `attnproof prove` or `attnproof certify` first"
        )
    return Results(tuple(claims), tuple(kernels), tuple(broken))


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted((folder / "claims").glob("*.json"))
    places = sorted(place for place in (folder / "certify").glob("*") if place.is_dir())
    yield from (place / "certificate.json" for place in places)


def _read(path: Path) -> dict[str, Any]:
    is_claim = path.parent.name == "claims"
    wanted = certificate.CLAIM_FORMAT if is_claim else certificate.KERNEL_FORMAT
    try:
        data = certificate.read(path)
    except (ValueError, RecursionError) as problem:
        raise ResultFileError(f"{path} is not a certificate: {problem}") from problem
    if data["format"] != wanted:
        raise ResultFileError(f"{path} has format {data['format']!r}; {wanted!r} belongs here")
    fault = best_match(Draft202012Validator(certificate.schema(wanted)).iter_errors(data))
    if fault is not None:
        place = "/".join(str(step) for step in fault.absolute_path) or "the top level"
        raise ResultFileError(f"{path} does not fit its schema at {place}: {fault.message[:200]}")
    if is_claim and path.stem != data["id"]:
        raise ResultFileError(f"{path} holds the claim {data['id']}; rename it to {data['id']}.json")
    return data
