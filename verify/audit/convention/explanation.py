"""A convention in full, as TOML that reads back as the same one: each field, its meaning, its value."""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verify.audit.convention.convention import Convention
from verify.audit.convention.declaration import OF_CHUNKS, Declaration, combined
from verify.audit.convention.file import CHOICES
from verify.audit.mechanism import MECHANISMS
from verify.model.errors import RequestError, unknown_name

_WIDTH = 108
_ASSUMED = "NOT STATED by the sources; assumed: "


@dataclass(frozen=True)
class Explanation:
    """The functions of one convention that were asked for.

    Args:
        requested: what the user wrote.
        shared: the fields of all of them.
        functions: those of each; one of the empty name where the convention names no functions.
        several: whether they are of more than one mechanism.
    """

    requested: str
    shared: dict[str, Any]
    functions: dict[str, dict[str, Any]]
    several: bool = False

    @classmethod
    def of(cls, requested: str) -> "Explanation":
        """A preset, or ``preset:mechanism``, or ``preset:function``; or a file instead of the preset.

        Raises:
            RequestError: there is no such preset, mechanism or function; says which are near.
        """
        name, part = split(requested)
        shared, functions = Convention.tables(name)
        functions = functions or {"": {}}
        if part in functions and part:
            return cls(requested, combined(shared, functions[part]), {"": {}})
        mechanisms = {f: (shared | own).get("mechanism") for f, own in functions.items()}
        served = sorted({mechanism for mechanism in mechanisms.values() if mechanism is not None})
        if part in MECHANISMS and None in mechanisms.values():
            mechanisms = {f: mechanism or part for f, mechanism in mechanisms.items()}
        elif part and part not in served:
            raise unknown_name(f"mechanism or function of convention {name}", part, [*served, *functions])
        elif not part and None in mechanisms.values():
            raise RequestError(f"{name} names no mechanism; ask for {name}:kda, or another one")
        elif not part and len(served) > 1:
            return cls(requested, shared, functions, several=True)
        chosen = part or served[0]
        own = {
            f: {key: value for key, value in functions[f].items() if key != "mechanism"}
            for f, mechanism in mechanisms.items()
            if mechanism == chosen
        }
        return cls(requested, shared | {"mechanism": chosen}, own)

    def text(self) -> str:
        """For people: the mechanisms there are, or a convention in full."""
        return self.contents() if self.several else self.toml()

    def conventions(self) -> dict[str, Convention]:
        """Each function's, as `Convention.load` gives it."""
        name = split(self.requested)[0]
        found = {f: Convention(name=name, **combined(self.shared, own)) for f, own in self.functions.items()}
        for convention in found.values():
            convention.check()
        return found

    def data(self) -> dict[str, Any]:
        """For machines: every field of every function, and which of them no source states."""
        entries = []
        for function, convention in self.conventions().items():
            fields = dataclasses.asdict(convention)
            del fields["not_stated"]
            stated = {*self.shared, *self.functions[function]} - set(convention.not_stated)
            unknown = [f for f in fields if f not in stated and f != "name"]
            entries.append({"function": function or None, "fields": fields, "not_stated": unknown})
        return {"convention": self.requested, "functions": entries}

    def toml(self) -> str:
        """For people: a file of their own to start from."""
        convention = next(iter(self.conventions().values()))
        lines = [f"# {self.requested}: {convention.summary}", _HEAD, ""]
        defaults = dataclasses.asdict(Declaration(name="", mechanism=convention.mechanism))
        tables = {}
        for field, about in _documented().items():
            value = self.shared.get(field, defaults[field])
            if isinstance(value, Mapping):
                tables[field] = about, value
                continue
            given = field in self.shared
            if not given and field in _unused(convention):
                continue
            unknown = field in self.shared.get("not_stated", ()) or (not given and self._silent(field))
            lines += _comment(f"{_ASSUMED if unknown else ''}{about}{_choices(field)}")
            lines += [f"{'' if given else '# '}{field} = {_value(value)}", ""]
        for field, (about, value) in tables.items():
            lines += [*_comment(about), *_table(field, value), ""]
        for function, own in self.functions.items():
            if function:
                name = function if re.fullmatch(r"[\w-]+", function) else json.dumps(function)
                lines += [f"[functions.{name}]", *_entries(own), ""]
        return "\n".join(lines).rstrip() + "\n"

    def contents(self) -> str:
        """The mechanisms with their functions."""
        by_mechanism: dict[str, list[str]] = {}
        for function, own in self.functions.items():
            by_mechanism.setdefault(own["mechanism"], []).append(function)
        lines = [f"{self.requested}: {self.shared.get('summary', '')}"]
        lines += [f"  {mechanism:<12} {', '.join(names)}" for mechanism, names in by_mechanism.items()]
        example = f"{self.requested}:{next(iter(by_mechanism))}"
        return "\n".join([*lines, f"In full: attnproof certify --explain-convention {example}"]) + "\n"

    def _silent(self, field: str) -> bool:
        """Whether some function does not state a field either."""
        return any(field not in own for own in self.functions.values())


_HEAD = """\
# Save this as a file and certify with --convention FILE.toml. A field that is left out, or commented out, has
# the value shown. A function named below differs from the rest in its own fields."""


def split(requested: str) -> tuple[str, str]:
    """Preset or file, and what is asked for in it."""
    name, colon, part = requested.partition(":")
    if requested.endswith(".toml") or ".toml:" in requested:
        name, colon, part = requested.partition(".toml:")
        name += ".toml" if colon else ""
    return name, part


def _documented() -> dict[str, str]:
    """Every field of a declaration and what its docstring says of it."""
    text = (Declaration.__doc__ or "").partition("Args:\n")[2]
    found = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", text, re.MULTILINE)
    order = ["mechanism", "summary"]
    about = {field: " ".join(words.split()) for field, words in found if field != "name"}
    return {field: about[field] for field in [*order, *(f for f in about if f not in order)]}


def _unused(convention: Convention) -> set[str]:
    """Fields that say nothing about such a function."""
    parts = {
        ("lower_bound",): convention.gate_form == "sigmoid",
        ("dt_bias_shape",): convention.gate_form in ("softplus", "sigmoid"),
        ("gate_form", "gate_space", "gate_infinite", "gate_dtype", "gate_sums"): bool(convention.kind.gate),
        ("qk_norm_eps",): convention.qk_norm != "none",
        ("beta_form", "corrections"): convention.kind.erases,
        ("state_layout", "state_dtype", "initial_state_required"): convention.kind.stateful,
        ("state_buffer", "state_in_place", "state_indices"): convention.kind.stateful,
        OF_CHUNKS: convention.form != "recurrent",
    }
    return {field for fields, used in parts.items() if not used for field in fields}


def _choices(field: str) -> str:
    return f" One of: {', '.join(CHOICES[field])}." if field in CHOICES else ""


def _comment(text: str) -> list[str]:
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = "#"
        line += " " + word
    return [*lines, line]


def _value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _table(field: str, table: Mapping[str, Any]) -> list[str]:
    return [f"[{field}]", *(f"{key} = {_value(value)}" for key, value in table.items())]


def _entries(own: Mapping[str, Any]) -> list[str]:
    """A function's fields; its tables go into braces."""
    return [
        f"{field} = {{ {', '.join(f'{k} = {_value(v)}' for k, v in value.items())} }}"
        if isinstance(value, Mapping) and value
        else f"{field} = {'{}' if isinstance(value, Mapping) else _value(value)}"
        for field, value in own.items()
    ]
