"""The notebook below examples/: it runs, its algorithm does what it says, and the kernel takes it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import kernel_program as k
import pytest
from conftest import ROOT

from mptcplab.algorithm import Algorithm, files_of

NOTEBOOK = ROOT / "examples" / "new_algorithm.py"
# What the last cell of the notebook does, with the text of the algorithm on standard input.
LOAD = """
import json, sys, mptcplab
loaded = mptcplab.cc_load(mptcplab.Algorithm.from_source(sys.stdin.read()))
listed = [one["name"] for one in mptcplab.cc_list()]
mptcplab.cc_unload("lab_halfway")
print(json.dumps([loaded["pinned"], listed, [one["name"] for one in mptcplab.cc_list()]]))
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A copy, such as the site offers, which has no scenarios beside it."""
    place = tmp_path_factory.mktemp("downloads") / NOTEBOOK.name
    place.write_text(NOTEBOOK.read_text())
    spec = spec_from_file_location("new_algorithm", place)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_compares_its_algorithm_with_lia(notebook: ModuleType) -> None:
    _, found = notebook.app.run(defs={"duration": "20 s", "repetitions": 2})
    mean = {(row["scenario"], row["cc"]): row["mean"] for row in found["table"].iter_rows(named=True)}
    assert set(mean) == {(place, cc) for place in ("shared", "private") for cc in ("halfway", "lia")}
    # LIA holds back more on private paths, and leaves more to the TCP connection at a shared bottleneck.
    assert mean["private", "halfway"] > 1.05 * mean["private", "lia"]
    assert mean["shared", "halfway"] > 1.05 * mean["shared", "lia"]
    assert len(found["windows"].axes) == 2
    assert found["kernel"].startswith(("loaded and unloaded: lab_halfway", "not loaded: "))


@pytest.mark.kernel
def test_the_kernel_takes_the_algorithm_of_the_notebook() -> None:
    k.program()
    k.need_root()
    source = next(cell for cell in NOTEBOOK.read_text().split('"""') if "CC_REGISTER(halfway" in cell)
    with k.bpf_file_system() as before:
        done = subprocess.run(
            [*before, sys.executable, "-c", LOAD], input=source, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    pinned, listed, after = json.loads(done.stdout)
    assert [one["name"] for one in pinned] == ["lab_halfway"]
    assert "lab_halfway" in listed
    assert "lab_halfway" not in after


@pytest.mark.kernel
def test_a_file_that_is_no_algorithm_is_refused_with_its_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    k.need_root()
    broken = tmp_path_factory.mktemp("cc") / "broken.c"
    broken.write_text('#include "cc.h"\nCC_UNCOUPLED(broken);\nint nothing = ;\nCC_REGISTER(broken);\n')
    done = subprocess.run([k.program(), "cc", "load", str(broken)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{broken}:3:" in done.stderr
    absent = subprocess.run([k.program(), "cc", "load", "absent.c"], capture_output=True, text=True, check=False)
    assert absent.returncode == 2
    assert "absent.c: No such file" in absent.stderr
    assert "hint: give the path of a C file" in absent.stderr


def test_words_of_a_command_line_name_files_of_texts() -> None:
    text = (
        '#include "cc.h"\nCC_UNCOUPLED(worded);\n'
        "CC_REGISTER(worded, .ssthresh = cc_reno_ssthresh, .cong_avoid = cc_reno_cong_avoid, "
        ".undo_cwnd = cc_reno_undo_cwnd);\n"
    )
    with files_of([Algorithm.from_source(text), "lia, olia"]) as words:
        assert words[1:] == ["lia", "olia"]
        assert words[0].endswith("/worded.c")
        assert Path(words[0]).read_text() == text
