import subprocess
import sys

import pytest

# Each runs in a process of its own, because signal handlers are for good.
WAITS = """
import os, signal, threading, time
from gua.daemon.stop import SignalStop
stop = SignalStop()
threading.Timer(0.2, os.kill, (os.getpid(), signal.{signal})).start()
begin = time.monotonic()
print(stop.wait(60), stop.requested, time.monotonic() - begin < 30)
"""
# The wait itself is not interrupted, as by a signal that comes just before it begins.
UNSEEN = """
import signal, threading, time
from gua.daemon.stop import SignalStop
stop = SignalStop()
threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.{signal})).start()
begin = time.monotonic()
stop.wait(60)
print(stop.requested, stop.reload_requested, time.monotonic() - begin < 30)
"""
SAMPLES = """
import os, select, signal, threading
from gua.daemon.stop import SignalStop, StopRequested
stop = SignalStop()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
read, write = os.pipe()
try:
    with stop.interruptible():
        try:
            select.select([read], [], [], 30)
        except Exception:
            print("swallowed by a guard")
except StopRequested:
    print("interrupted")
os.kill(os.getpid(), signal.SIGTERM)
print(stop.requested)
"""


def run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_wait_at_once(signal: str) -> None:
    assert run(WAITS.format(signal=signal)) == "True True True\n"


@pytest.mark.parametrize(("signal", "requested"), [("SIGTERM", "True False"), ("SIGHUP", "False True")])
def test_a_signal_that_does_not_interrupt_a_wait_ends_it_too(signal: str, requested: str) -> None:
    assert run(UNSEEN.format(signal=signal)) == f"{requested} True\n"


def test_a_signal_ends_a_blocked_sample_and_a_second_one_is_harmless() -> None:
    assert run(SAMPLES) == "interrupted\nTrue\n"
