"""What a case should give: exact, in float64 with a bound on its own error, in balls."""
