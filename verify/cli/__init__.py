"""The command ``attnproof``. Nothing heavy is imported until a command needs it."""

import sys

import typer

from verify.cli import certify, claims, inspect, recheck, refute, report
from verify.model.errors import AttnproofError

app = typer.Typer(
    name="attnproof",
    help="Prove, refute and certify statements about attention mechanisms.\n\n"
    "prove re-derives theorems step by step; refute builds exact counterexamples; certify checks the "
    "numerics of a kernel against exact references with derived tolerances; report shows it all.\n\n"
    "Exit codes: 0 everything holds, 1 something is refuted or fails, 2 the request or the environment is "
    "wrong, 3 undecided.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(claims.prove)
app.add_typer(refute.app, name="refute")
app.command()(certify.certify)
app.command()(report.report)
app.command()(recheck.recheck)
app.command("list")(inspect.list_claims)
app.command()(inspect.show)
app.command()(inspect.doctor)


def main() -> None:
    """Run the command; every error a user can act on is one sentence on standard error."""
    try:
        sys.exit(app(standalone_mode=False))
    except AttnproofError as problem:
        _fail(str(problem), problem.exit_code)
    except OSError as problem:
        # A file or folder the user named: no room, no right, a name too long, a file where a folder must be.
        _fail(f"{problem.filename or 'a file'} cannot be used: {problem.strerror or problem}", 2)
    except typer.Abort:
        _fail("stopped", 130)
    except Exception as problem:
        # Usage errors of the command line come from click, which typer may carry inside itself.
        if not hasattr(problem, "format_message"):
            raise
        _fail(problem.format_message(), 2)


def _fail(sentence: str, code: int) -> None:
    print(f"attnproof: {sentence}", file=sys.stderr)
    sys.exit(code)
