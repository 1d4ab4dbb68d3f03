import sys
import threading

import pytest

from gua.doctor.beside import Beside
from gua.doctor.question import NO_ANSWER, Answer, Question


def python(code: str) -> Question:
    return Question([sys.executable, "-c", code])


def test_an_answer_has_the_status_and_what_was_printed() -> None:
    code = "import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr); sys.exit(3)"
    assert python(code).answer(90) == Answer(3, "out\nerr\n")


def test_a_program_that_is_not_there_has_no_answer() -> None:
    assert Question(["/nowhere/nvidia-smi"]).answer(90) == NO_ANSWER


def test_one_that_does_not_end_is_killed_whatever_signals_it_ignores() -> None:
    hanging = python("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
    assert hanging.answer(0.2) == NO_ANSWER


def test_no_time_left_is_no_wait() -> None:
    assert python("import time; time.sleep(600)").answer(-5) == NO_ANSWER


def test_work_beside_gives_its_result_or_raises_what_it_raised() -> None:
    assert Beside(lambda: 7).result(90) == 7
    with pytest.raises(ZeroDivisionError):
        Beside(lambda: 1 // 0).result(90)


def test_work_that_does_not_end_is_not_waited_for() -> None:
    release = threading.Event()
    assert Beside(lambda: release.wait(600)).result(0.05) is None
    release.set()
