"""docs/kernels.md lists the forms that exist, each callable by the name and place it says."""

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "kernels.md").read_text()
TABLE = re.findall(r"^\| (\w+) \|((?: `?\w*`? ?\|){5})$", PAGE, re.M)
FORMS = "reference|recurrent|chunked|tiled|blocked|certified|triton|triton_recurrent|triton_chunked"


def test_the_table_is_what_the_folders_hold():
    listed = {mechanism: set(re.findall(r"`(\w+)`", row)) for mechanism, row in TABLE}
    found = {}
    for path in sorted((ROOT / "kernels").glob("*/*.py")):
        names = re.findall(rf"^def ((?:{FORMS})_{path.parent.name})\(", path.read_text(), re.M)
        for name in names:
            found.setdefault(path.parent.name, set()).add(name)
    assert listed == found


def test_every_form_is_a_function_of_the_module_of_its_name():
    for mechanism, row in TABLE:
        for name in re.findall(r"`(\w+)`", row):
            form = {"triton_softmax": "triton_tiled"}.get(name, name.removesuffix(f"_{mechanism}"))
            assert callable(getattr(import_module(f"kernels.{mechanism}.{form}"), name))


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    scope = {}
    exec(example, scope)
    assert scope["state"].shape == (1, 4, 64, 64)
    assert scope["o"].shape == (1, 1, 4, 64)
