"""A connection to one host that is kept between two questions."""

from __future__ import annotations

import contextlib

from gua_fleet.probes.answer import Answer
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.dial import hang_up
from gua_fleet.ssh.runner import AnswerRunner, FleetConnection


class Line:
    """connection: None until the first answer, and after a failure. One thread at a time may use it."""

    def __init__(self) -> None:
        self.connection: FleetConnection | None = None
        self._closing = contextlib.ExitStack()

    def ask(self, attempt: Attempt, command: str, *, cap_bytes: int, stdin: bytes) -> Answer:
        """What `command` prints. After any failure, or a cancelled attempt, the connection is gone."""
        connection = self.connection
        assert connection is not None  # the caller looked
        attempt.on_cancel(self.hang_up)
        try:
            answer = AnswerRunner(connection).run(command, attempt=attempt, cap_bytes=cap_bytes, stdin=stdin)
        except BaseException:
            if self.connection is connection:  # else this thread was given up long ago, and another one has dialled
                self.close()
            raise
        attempt.hand_over()  # so that a late `cancel` cannot end what is kept
        return answer

    def keep(self, attempt: Attempt, connection: FleetConnection) -> None:
        """Take over the connection that the attempt made, unless the attempt was given up meanwhile."""
        if attempt.cancelled:
            return
        self.close()
        self._closing = attempt.hand_over()
        self.connection = connection

    def hang_up(self) -> None:
        """End the conversation without blocking; whoever reads from it wakes up."""
        if self.connection is not None and self.connection.transport is not None:
            hang_up(self.connection.transport.sock)

    def close(self) -> None:
        """Free everything; may block for a second."""
        self.connection = None
        self._closing.close()
