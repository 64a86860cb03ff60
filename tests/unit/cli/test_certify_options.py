"""Options of ``attnproof certify`` that need no kernel."""

import pytest

from verify.audit.case import DTYPES
from verify.cli.certify import _dtypes
from verify.model.errors import RequestError


def test_several_dtypes_may_be_asked_for() -> None:
    assert _dtypes("float32") == ["float32"]
    assert _dtypes("bfloat16, float32,bfloat16") == ["bfloat16", "float32"]
    assert _dtypes("all") == list(DTYPES)


@pytest.mark.parametrize("asked", ["float31", "float32,", "", "all,float32"])
def test_an_unknown_one_is_named_with_those_there_are(asked: str) -> None:
    with pytest.raises(RequestError, match="--dtype takes float64, float32, bfloat16 or float16"):
        _dtypes(asked)
