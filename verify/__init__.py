"""attnproof's engine room: model, numbers, derivations, engines, checkers, audit, report and the command."""
