"""The questions of `millrace new`, as a user at a terminal answers them."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import yaml

SOURCE = Path(__file__).resolve().parents[4]
QUESTION = b"[Y/n]: "
CTRL_C = b"\x03"
PATIENCE_SECONDS = 120.0
PRESSED_AGAIN_AFTER_SECONDS = 5.0


def talk(folder: Path, answers: Sequence[bytes]) -> tuple[str, int]:
    """What `millrace new` shows at a terminal where each of its questions gets an answer, and its exit code."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from pipeline.cli import main; main()"
    arguments = ["new", "mine", "rows.csv", "--label", "kind"]
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        cwd=folder,
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        # A terminal of its own, so that Ctrl-C reaches it.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(its)
    shown, left, answer = b"", list(answers), b""
    while True:
        # Python forgets a Ctrl-C in the microseconds between showing a question and waiting; one presses it again then.
        if answer == CTRL_C and not select.select([ours], [], [], PRESSED_AGAIN_AFTER_SECONDS)[0]:
            os.write(ours, CTRL_C)
        if not select.select([ours], [], [], PATIENCE_SECONDS)[0]:
            break
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # Linux's way to say that nobody has the terminal open any more.
            break
        shown += data
        if left and shown.endswith(QUESTION):
            answer = left.pop(0)
            os.write(ours, answer)
    os.close(ours)
    return shown.decode(), process.wait(PATIENCE_SECONDS)


def write_rows(folder: Path) -> None:
    rows = [f"{2000 + row // 10}-01-01,{row * 7 % 13},{['Ape', 'ape', 'Bee'][row * 5 % 3]}" for row in range(200)]
    (folder / "rows.csv").write_text("seen,size,kind\n" + "\n".join(rows) + "\n")


def test_each_question_is_asked_until_it_is_answered(tmp_path: Path) -> None:
    write_rows(tmp_path)
    shown, code = talk(tmp_path, [b"maybe\n", b"\n", b"n\n"])
    assert code == 0, shown
    same = "These classes of kind differ only in case: Ape = ape. Are they the same? [Y/n]: "
    assert shown.count(same) == 2
    assert f"{same}maybe\r\nError: invalid input" in shown
    assert shown.count("judge by the 40 newer ones, as seen says (no: draw them at random)? [Y/n]: ") == 1
    settings = yaml.safe_load((tmp_path / "recipes" / "mine" / "recipe.yaml").read_text())
    assert "split_by_time" not in settings["data"]
    assert "ignore_case=True" in (tmp_path / "recipes" / "mine" / "features.py").read_text()


def test_a_copy_of_the_label_is_kept_and_rows_of_one_id_stay_together_where_that_is_answered(tmp_path: Path) -> None:
    kinds = [["ape", "bee", "cat"][row * 5 % 3] for row in range(200)]
    rows = [f"{1000 + row // 2},{row * 7 % 13},{kind[0]},{kind}" for row, kind in enumerate(kinds)]
    (tmp_path / "rows.csv").write_text("customer_id,size,letter,kind\n" + "\n".join(rows) + "\n")
    shown, code = talk(tmp_path, [b"n\n", b"\n"])
    assert code == 0, shown
    assert shown.count("letter alone tells kind: leave it out? [Y/n]: ") == 1
    assert shown.count("customer_id repeats: keep all rows of one in the same split? [Y/n]: ") == 1
    settings = yaml.safe_load((tmp_path / "recipes" / "mine" / "recipe.yaml").read_text())
    assert settings["data"]["split_by"] == "customer_id"
    assert 'Categories(["letter"])' in (tmp_path / "recipes" / "mine" / "features.py").read_text()
    assert "letter alone tells kind: is it known when the model is asked?" in shown


def test_ctrl_c_at_a_question_writes_nothing(tmp_path: Path) -> None:
    write_rows(tmp_path)
    shown, code = talk(tmp_path, [CTRL_C])
    assert code != 0
    assert "Aborted!" in shown
    assert not (tmp_path / "recipes").exists()
