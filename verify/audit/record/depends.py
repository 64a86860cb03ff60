"""Hashes of what a certificate depends on besides the kernel: the request, this tool and the machine."""

import os
import platform
from functools import cache
from pathlib import Path

from verify.audit.request import Request
from verify.model import digest, environment, registry

_SETTINGS = ("TRITON_", "TORCH", "PYTORCH_", "CUDA_", "NVIDIA_", "FLA_", "OMP_", "MKL_", "PYTHONPATH")
"""Environment variables that change what a kernel does, by how they begin."""


def depends(request: Request) -> dict[str, str]:
    """Hashes by what a user would call the thing."""
    return {"the request": request.digest(), "attnproof": _tool(), "the machine": _machine()}


@cache
def _tool() -> str:
    """The certifier's sources, the definitions and kernels it computes with, and its libraries."""
    verify_room = Path(__file__).parents[2]
    rooms = [verify_room / name for name in ("model", "numbers", "audit")]
    rooms += [registry.room_path(name) for name in ("kernels", "derivations")]
    versions = {name: environment.version(name) for name in environment.PACKAGES}
    return digest.of_json([digest.of_sources(rooms), versions])


def _machine() -> str:
    """Platform, processors, settings, and the folder that relative names start from."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(_SETTINGS)}
    described = [platform.platform(), platform.python_version(), os.getcwd(), *_processors()]
    return digest.of_json([described, settings])


def _processors() -> list[str]:
    """The models of the processors and of the GPUs, where Linux says them."""
    files = [Path("/proc/cpuinfo"), *sorted(Path("/proc/driver/nvidia").glob("gpus/*/information"))]
    lines = [line for file in files if file.is_file() for line in file.read_text("utf-8").splitlines()]
    return sorted({line for line in lines if line.lower().startswith("model")})
