"""Freed memory kept for the next array, instead of handed back to the system and asked for again."""

import ctypes
import sys

# Names and values of glibc's <malloc.h>; the largest values that mallopt takes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_TRIM, _LARGEST_MMAP = 2**31 - 1, 32 * 2**20


def keep_freed_memory() -> None:
    """Let glibc's malloc, where it is the one in use, keep what is freed.

    The model's runs make and drop arrays of megabytes at every operation. By default each comes fresh from
    the system, page by page, which takes a sixth to a quarter of all time; the peak stays what it was.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP)
        mallopt(_TRIM_THRESHOLD, _LARGEST_TRIM)
