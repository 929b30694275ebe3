import runpy
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parent.parent
MUTATIONS = runpy.run_path(str(TREE / "tools" / "mutations.py"))["MUTATIONS"]


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_still_apply(name):
    file, old, new = MUTATIONS[name]
    assert old != new and old in (TREE / file).read_text()
