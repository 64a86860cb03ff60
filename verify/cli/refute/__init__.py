"""``attnproof refute``: the counterexamples of the registry, and those to the user's own objects."""

import typer
from typer.core import TyperGroup

from verify.cli.claims import refute
from verify.cli.refute import collision, gated_collision, rank, representable, retention


class _ClaimsByDefault(TyperGroup):
    """A group whose first word may also be a claim id or an option of ``claims``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        named = args[:1]
        if named != ["--help"] and not set(named) & set(self.commands):
            args = ["claims", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_ClaimsByDefault,
    help="Build exact counterexamples and re-check them by independent code.\n\n"
    "`attnproof refute` settles every counterexample of the registry, `attnproof refute delta.overwrite` one "
    "of them. The other commands build counterexamples to objects of your own; each writes a certificate "
    "that attnproof recheck and attnproof report read.\n\n"
    "Exit codes: 0 the counterexample stands, 1 it does not, 2 the request is wrong, 3 the search ended "
    "without an answer.",
    rich_markup_mode=None,
)
app.command("claims")(refute)
app.command("collision")(collision.collision)
app.command("rank")(rank.rank)
app.command("representable")(representable.representable)
app.command("gated-collision")(gated_collision.gated_collision)
app.command("retention")(retention.retention)
