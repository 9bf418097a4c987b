"""The mutants' tool, on a small tree: the order of tests, verdicts, exit codes, kept verdicts."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.mutants import judge
from tests.mutants.__main__ import main
from tests.mutants.judge import FAST, Baseline, Speed, Stage
from tests.mutants.lists import ROOT, Mutant
from tests.mutants.trees import Tree

FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n'
    'markers = ["slow", "interop"]\n',
    "embedlog/__init__.py": "",
    "embedlog/shop/__init__.py": "",
    "embedlog/shop/till.py": """
        def total(prices, discount):
            owed = sum(prices)
            owed -= min(discount, owed)
            is_open = True
            while is_open:
                is_open = False
            return owed
        """,
    "tests/shop/test_till.py": """
        from embedlog.shop.till import total

        def test_a_discount_is_taken_off():
            assert total([3, 4], 2) == 5
        """,
    "tests/shop/test_window.py": """
        import subprocess, sys
        import pytest
        from embedlog.shop import till

        def test_of_a_child_process():
            code = "from embedlog.shop.till import total; assert total([], 0) == 0"
            subprocess.run([sys.executable, "-c", code], check=True)

        @pytest.mark.slow
        def test_nobody_is_owed():
            assert till.total([3], 4) == 0
        """,
    "tests/shop/test_weather.py": """
        def test_that_fails_always():
            assert False
        """,
    "tests/other/test_far.py": """
        def test_an_empty_basket():
            from embedlog.shop import till
            assert till.total([], 9) == 0
        """,
}
FILE = "embedlog/shop/till.py"
SURPLUS = Mutant("shop", "surplus", FILE, "-owed -= min(discount, owed)\n+owed -= discount")
LOSS = Mutant("shop", "loss", FILE, "-owed -= min(discount, owed)\n+owed -= owed")
HANG = Mutant("shop", "hang", FILE, "-    is_open = False\n+    pass")
BROKEN = Mutant("shop", "broken", FILE, "-owed = sum(prices)\n+owed = sum(price)")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return the root of a small tree with tests."""
    for name, text in FILES.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path / "shop"


def _judge(shop: Path, mutant: Mutant, **options: bool) -> judge.Verdict:
    with Tree(shop) as tree:
        return judge.judge(mutant, tree, judge.stages(mutant, shop, **options), Baseline())


def test_the_narrowest_tests_run_first_and_none_twice(shop: Path) -> None:
    mutant = dataclasses.replace(SURPLUS, tests=("tests/shop/test_till.py::test_a", "tests/other"))
    assert [(stage.speed.name, stage.paths) for stage in judge.stages(mutant, shop, wide=True)] == [
        ("fast", ("tests/shop/test_till.py::test_a", "tests/other")),
        ("fast", ("tests/shop/test_till.py", "tests/shop/test_window.py")),
        ("fast", ("tests/shop",)),
        ("fast", ("tests",)),
    ]
    assert judge.stages(mutant, shop, wide=True)[-1].done == (
        *("tests/shop/test_till.py::test_a", "tests/other"),
        *("tests/shop/test_till.py", "tests/shop/test_window.py", "tests/shop"),
    )


def test_slow_tests_run_after_all_fast_ones(shop: Path) -> None:
    stages = judge.stages(SURPLUS, shop, slow=True)
    assert [stage.speed.name for stage in stages] == ["fast", "fast", "slow", "slow"]


def test_code_without_a_folder_of_tests_has_tests_elsewhere() -> None:
    mutant = Mutant("broker", "a", "embedlog/broker/apis/heartbeat.py", "")
    assert [stage.paths for stage in judge.stages(mutant, ROOT)] == [
        ("tests/apis",),
        ("tests/golden",),
        ("tests/broker",),
    ]


@pytest.mark.slow
def test_a_mutant_is_caught_by_a_test_that_passes_without_it(shop: Path) -> None:
    verdict = _judge(shop, LOSS)
    assert verdict.is_caught
    assert verdict.test == "tests/shop/test_till.py::test_a_discount_is_taken_off"
    assert verdict.speed == "fast"


@pytest.mark.slow
def test_a_mutant_survives_fast_tests_and_is_caught_by_a_slow_one(shop: Path) -> None:
    verdict = _judge(shop, SURPLUS)
    assert not verdict.is_caught
    assert len(verdict.passed) == 2
    verdict = _judge(shop, SURPLUS, slow=True)
    assert verdict.test == "tests/shop/test_window.py::test_nobody_is_owed"
    assert verdict.speed == "slow"


@pytest.mark.slow
def test_a_test_far_away_notices_in_a_wide_search(shop: Path) -> None:
    verdict = _judge(shop, SURPLUS, wide=True)
    assert verdict.test == "tests/other/test_far.py::test_an_empty_basket"


IMPATIENT = Stage(Speed("fast", FAST.marks, 2), ("tests/shop/test_till.py",), ())
ENDLESS = """
    import signal
    def test_that_ignores_its_time_limit():
        from embedlog.shop import till
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        till.total([], 0)
    """


@pytest.mark.slow
def test_a_hanging_mutant_is_caught_by_the_time_limit_of_a_test(shop: Path) -> None:
    with Tree(shop) as tree:
        verdict = judge.judge(HANG, tree, [IMPATIENT], Baseline())
    assert verdict.test == "tests/shop/test_till.py::test_a_discount_is_taken_off"


@pytest.mark.slow
@pytest.mark.parametrize("text", [ENDLESS, "from embedlog.shop import till\ntill.total([], 0)\n"])
def test_a_hang_that_no_test_ends_is_caught(shop: Path, text: str) -> None:
    (shop / "tests/shop/test_till.py").write_text(textwrap.dedent(text))
    with Tree(shop) as tree:
        verdict = judge.judge(HANG, tree, [IMPATIENT], Baseline())
    assert verdict.is_caught
    assert verdict.hung
    expected = "tests/shop/test_till.py::test_that_ignores" if text == ENDLESS else "pytest: "
    assert verdict.test.startswith(expected)


@pytest.mark.slow
def test_the_copy_is_as_before_and_child_processes_see_the_mutant(shop: Path) -> None:
    child = Stage(FAST, ("tests/shop/test_window.py",), ())
    with Tree(shop) as tree:
        before = (tree.root / FILE).stat().st_mtime_ns
        for _ in range(2):
            verdict = judge.judge(BROKEN, tree, [child], Baseline())
            assert verdict.test == "tests/shop/test_window.py::test_of_a_child_process"
            assert (tree.root / FILE).read_text() == (shop / FILE).read_text()
            assert (tree.root / FILE).stat().st_mtime_ns == before
            assert tree.pytest(*child.paths, "-m", FAST.marks, limit_s=60).failed is None
    assert not tree.root.exists()


@pytest.mark.slow
def test_bytecode_of_another_mutant_of_the_same_size_is_not_run(shop: Path) -> None:
    one = Mutant("shop", "one", FILE, "-return owed\n+return 6666")
    other = Mutant("shop", "other", FILE, "-return owed\n+return 5   ")
    stage = Stage(FAST, ("tests/shop/test_till.py",), ())
    with Tree(shop) as tree:
        assert judge.judge(one, tree, [stage], Baseline()).is_caught
        assert not judge.judge(other, tree, [stage], Baseline()).is_caught


def _write(folder: Path, *mutants: Mutant, more: str = "") -> str:
    path = folder / "shop.toml"
    entries = [
        f"[[mutant]]\nid='{each.id}'\nfile='{each.file}'\nchange='''\n{each.change}\n'''\n{more}"
        for each in mutants
    ]
    path.write_text("\n".join(entries))
    return str(path)


@pytest.mark.slow
def test_the_exit_code_tells_of_a_survivor(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path, LOSS, SURPLUS)
    assert main([path, "-j", "2"], shop) == 1
    told = capsys.readouterr().out
    assert "caught" in told
    assert "SURVIVED" in told
    assert "50.0% caught by fast tests, 50.0% by any." in told
    assert main([_write(tmp_path, LOSS)], shop) == 0
    assert main([_write(tmp_path, SURPLUS, more="survives='nobody pays that'\n")], shop) == 0
    assert main([_write(tmp_path, SURPLUS, more="slow=true\n")], shop) == 0
    assert "nothing to judge" in capsys.readouterr().out


@pytest.mark.slow
def test_verdicts_are_kept_until_the_tree_changes(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, kept = _write(tmp_path, LOSS, SURPLUS), tmp_path / "verdicts.json"
    main([path, "--json", str(kept)], shop)
    before = json.loads(kept.read_text())
    assert main([path, "--json", str(kept)], shop) == 1
    assert json.loads(kept.read_text())["verdicts"].keys() == before["verdicts"].keys()
    assert "SURVIVED     0.0 s" in capsys.readouterr().out  # no stage was left to run
    (shop / "tests/shop/test_more.py").write_text(
        "from embedlog.shop.till import total\ndef test_more():\n    assert total([1], 2) == 0\n"
    )
    assert main([path, "--json", str(kept)], shop) == 0


@pytest.mark.slow
def test_a_sample_depends_on_the_seed_alone(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path, LOSS, *[Mutant("shop", f"m{n}", FILE, LOSS.change) for n in range(9)])
    chosen = set()
    for seed in ("one", "one", "two"):
        main([path, "--sample", "1", "--seed", seed], shop)
        chosen.add(capsys.readouterr().out.partition("shop: ")[2].partition(" ")[0])
    assert len(chosen) == 2


def test_a_list_that_does_not_fit_is_refused(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path, Mutant("shop", "gone", FILE, "-owed = 0\n+owed = 1"))
    assert main([path], shop) == 2
    assert main(["nowhere"], shop) == 2
    told = capsys.readouterr().err
    assert "gone: the old lines occur 0 times" in told
    assert "no room, mutant or file is named nowhere" in told


@pytest.mark.slow
def test_an_interrupted_run_leaves_neither_processes_nor_copies(shop: Path, tmp_path: Path) -> None:
    (shop / "tests/shop/test_till.py").write_text(
        f"import os, time\ndef test_a():\n    open({str(tmp_path / 'pid')!r}, 'w')"
        ".write(f'{os.getpid()} {os.getcwd()}')\n    time.sleep(600)\n"
    )
    code = "import sys; from pathlib import Path; from tests.mutants import __main__ as m; "
    code += "m.signal.signal(m.signal.SIGTERM, m.signal.default_int_handler); "
    code += f"m.main([{_write(tmp_path, LOSS)!r}], Path({str(shop)!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < end
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    told = process.communicate(timeout=60)[1].decode()
    pid, folder = (tmp_path / "pid").read_text().split()
    assert not Path(folder).exists(), told
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
