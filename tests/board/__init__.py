"""A board for tests: a real HTTP server that keeps the contract, and breaks it on request."""

from tests.board.authority import Authority
from tests.board.server import Board, Misdeed, running_board

__all__ = ["Authority", "Board", "Misdeed", "running_board"]
