"""Programs of FPBench (rosa, fptaylor-extra, fptaylor-real2float) and the bounds published for them.

Figures are absolute errors in binary64. FPTaylor 0.9.4 (commit of 2021-03) and Gappa 1.4.1 were run on
FPTaylor's own inputs, benchmarks/toplas, when this list was made: standard and improved rounding with exact
optimisation (config-b, config-c), and its scripts for Gappa with and without hints; kepler1 and kepler2 are
from its benchmarks/real2float/results.txt. Daisy: regression/reference/dataflow_IA_AA_results.csv of
malyzajko/daisy. VCFloat2: the bounds checked in FPBench/*.v of VeriNum/vcfloat. Fluctuat, with subdivision:
experiments/results/fluctuat.txt of soarlab/FPTaylor.
"""

from dataclasses import dataclass

Ends = tuple[int | str, int | str]


@dataclass(frozen=True)
class Benchmark:
    """One program; figures that were not published are absent."""

    name: str
    text: str
    box: dict[str, Ends]
    published: dict[str, str]
    note: str = ""


TOOLS = ("FPTaylor b", "FPTaylor c", "Gappa", "Gappa, hints", "Daisy", "VCFloat2", "Fluctuat")


def _figures(text: str) -> dict[str, str]:
    """One figure for each of `TOOLS`, "-" where there is none."""
    return {tool: figure for tool, figure in zip(TOOLS, text.split(), strict=True) if figure != "-"}


_DOPPLER = "t = 331.4 + 0.6*T\n(-t*v) / ((t + u)*(t + u))"
_BODY: dict[str, Ends] = {"x1": (-15, 15), "x2": (-15, 15), "x3": (-15, 15)}
_TURBINE: dict[str, Ends] = {"v": ("-4.5", "-0.3"), "w": ("0.4", "0.9"), "r": ("3.8", "7.8")}
_KEPLER: dict[str, Ends] = {f"x{i}": (4, "6.36") for i in range(1, 7)}
_JET = """t = 3*x1*x1 + 2*x2 - x1
s = t/(x1*x1 + 1)
x1 + ((2*x1*s*(s - 3) + x1*x1*(4*s - 6))*(x1*x1 + 1) + 3*x1*x1*s + x1*x1*x1 + x1 \
+ 3*((3*x1*x1 + 2*x2 - x1)/(x1*x1 + 1)))"""

BENCHMARKS = (
    Benchmark(
        "carbonGas",
        "(3.5e7 + 0.401*(1000/v)*(1000/v))*(v - 1000*42.7e-6) - 1.3806503e-23*1000*300",
        {"v": ("0.1", "0.5")},
        _figures("8.004e-9 4.962e-9 2.61e-8 6.00e-9 3.91e-8 2.5e-8 8.88e-9"),
        "FPTaylor takes the constants for inputs of one value",
    ),
    Benchmark(
        "doppler1",
        _DOPPLER,
        {"u": (-100, 100), "v": (20, 20000), "T": (-30, 50)},
        _figures("1.580e-13 1.218e-13 2.02e-13 1.61e-13 4.19e-13 4.5e-13 1.39e-13"),
    ),
    Benchmark(
        "doppler2",
        _DOPPLER,
        {"u": (-125, 125), "v": (15, 25000), "T": (-40, 60)},
        _figures("2.891e-13 2.226e-13 3.92e-13 2.86e-13 1.05e-12 1.2e-12 2.59e-13"),
    ),
    Benchmark(
        "doppler3",
        _DOPPLER,
        {"u": (-30, 120), "v": (320, 20300), "T": (-50, 30)},
        _figures("8.217e-14 6.627e-14 1.08e-13 8.68e-14 1.68e-13 2.0e-13 7.63e-14"),
    ),
    Benchmark(
        "jetEngine",
        _JET,
        {"x1": (-5, 5), "x2": (-20, 5)},
        _figures("1.336e-11 1.028e-11 8.24e+6 4.43e+3 - 2.13e+3 1.82e-11"),
    ),
    Benchmark(
        "predatorPrey",
        "4*x*x / (1 + (x/1.11)*(x/1.11))",
        {"x": ("0.1", "0.3")},
        _figures("1.836e-16 1.586e-16 2.04e-16 1.67e-16 1.75e-16 3.1e-16 2.35e-16"),
    ),
    Benchmark(
        "rigidBody1",
        "-x1*x2 - 2*x2*x3 - x1 - x3",
        _BODY,
        _figures("3.865e-13 2.949e-13 2.95e-13 2.95e-13 2.95e-13 3.1e-13 3.22e-13"),
    ),
    Benchmark(
        "rigidBody2",
        "2*x1*x2*x3 + 3*x3*x3 - x2*x1*x2*x3 + 3*x3*x3 - x2",
        _BODY,
        _figures("5.232e-11 3.607e-11 3.61e-11 3.61e-11 3.61e-11 3.9e-11 3.65e-11"),
    ),
    Benchmark(
        "sine",
        "x - (x*x*x)/6.0 + (x*x*x*x*x)/120.0 - (x*x*x*x*x*x*x)/5040.0",
        {"x": ("-1.57079632679", "1.57079632679")},
        _figures("5.547e-16 4.430e-16 1.13e-15 6.91e-16 1.13e-15 - 6.86e-16"),
    ),
    Benchmark(
        "sineOrder3",
        "0.954929658551372*z - 0.12900613773279798*(z*z*z)",
        {"z": (-2, 2)},
        _figures("9.515e-16 5.937e-16 8.89e-16 6.54e-16 1.45e-15 - 1.03e-15"),
    ),
    Benchmark(
        "sqroot",
        "1.0 + 0.5*y - 0.125*y*y + 0.0625*y*y*y - 0.0390625*y*y*y*y",
        {"y": (0, 1)},
        _figures("6.991e-16 5.016e-16 5.71e-16 5.35e-16 5.71e-16 - 6.84e-16"),
    ),
    Benchmark(
        "t_div_t1", "t / (t + 1)", {"t": (0, 999)}, _figures("5.717e-14 2.216e-16 1000 9.99 - 4.4e-16 -")
    ),
    Benchmark(
        "turbine1",
        "3 + 2/(r*r) - 0.125*(3 - 2*v)*(w*w*r*r)/(1 - v) - 4.5",
        _TURBINE,
        _figures("2.313e-14 1.670e-14 8.40e-14 2.41e-14 8.65e-14 7.9e-14 8.30e-14"),
    ),
    Benchmark(
        "turbine2",
        "6*v - 0.5*v*(w*w*r*r)/(1 - v) - 2.5",
        _TURBINE,
        _figures("2.548e-14 2.001e-14 1.28e-13 3.32e-14 1.31e-13 1.2e-13 1.10e-13"),
    ),
    Benchmark(
        "turbine3",
        "3 - 2/(r*r) - 0.125*(1 + 2*v)*(w*w*r*r)/(1 - v) - 0.5",
        _TURBINE,
        _figures("1.239e-14 9.574e-15 39.9 0.352 6.23e-14 6.1e-14 5.94e-14"),
    ),
    Benchmark(
        "verhulst",
        "4*x / (1 + x/1.11)",
        {"x": ("0.1", "0.3")},
        _figures("3.235e-16 2.471e-16 4.18e-16 2.87e-16 3.72e-16 2.33e-16 4.77e-16"),
    ),
    Benchmark(
        "himmilbeau",
        "(x1*x1 + x2 - 11)*(x1*x1 + x2 - 11) + (x1 + x2*x2 - 7)*(x1 + x2*x2 - 7)",
        {"x1": (-5, 5), "x2": (-5, 5)},
        _figures("- 1.000e-12 - - - - -"),
    ),
    Benchmark(
        "kepler0",
        "x2*x5 + x3*x6 - x2*x3 - x5*x6 + x1*(-x1 + x2 + x3 - x4 + x5 + x6)",
        _KEPLER,
        _figures("- 7.469e-14 - - - - -"),
    ),
    Benchmark(
        "kepler1",
        "x1*x4*(-x1 + x2 + x3 - x4) + x2*(x1 - x2 + x3 + x4) + x3*(x1 + x2 - x3 + x4) "
        "- x2*x3*x4 - x1*x3 - x1*x2 - x4",
        {name: _KEPLER[name] for name in ("x1", "x2", "x3", "x4")},
        _figures("- 2.71e-13 - - - - -"),
    ),
    Benchmark(
        "kepler2",
        "x1*x4*(-x1 + x2 + x3 - x4 + x5 + x6) + x2*x5*(x1 - x2 + x3 + x4 - x5 + x6) "
        "+ x3*x6*(x1 + x2 - x3 + x4 + x5 - x6) - x2*x3*x4 - x1*x3*x5 - x1*x2*x6 - x4*x5*x6",
        _KEPLER,
        _figures("- 1.58e-12 - - - - -"),
    ),
    Benchmark(
        "floudas3",
        "-12*x1 - 7*x2 + x2*x2",
        {"x1": (0, 2), "x2": (0, 3)},
        _figures("- 1.318e-14 - - - - -"),
        "its constraint on the inputs is left out",
    ),
    Benchmark(
        "logexp",
        "log(1 + exp(x))",
        {"x": (-8, 8)},
        _figures("- 1.987e-15 - - - - -"),
        "exp and log within 0.75 units in the last place, as FPTaylor has them",
    ),
)
