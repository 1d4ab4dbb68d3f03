"""A bad link: a program that carries frames between two interfaces of this machine late, or not at all.

`python -m tests.lab.relay IF_A IF_B DELAY_MS LOSS_PCT` prints a line when it carries, and does so until it is killed.
The kernels of many test machines have no netem. Loss is spread evenly and not drawn by lot, so that a test meets the
same link each time: of 100 frames each way LOSS_PCT are lost, and below 50 never two that follow each other.
"""

from __future__ import annotations

import contextlib
import heapq
import select
import socket
import sys
import time
from collections.abc import Iterator

ETH_P_ALL = 0x0003
# A hop's worth of metadata before each frame: what a sender left for its card to do (checksum, segments) goes along.
SOL_PACKET, PACKET_VNET_HDR = 263, 15
VNET_HEADER = 10
ARP = b"\x08\x06"
# One frame can be a whole unsegmented 64 KiB packet.
FRAME_BYTES = 1 << 17


def main(name_a: str, name_b: str, delay_ms: str, loss_pct: str) -> None:
    """Carry for ever."""
    side_a, side_b = _open(name_a), _open(name_b)
    ways = {side_a: (side_b, losses(int(loss_pct))), side_b: (side_a, losses(int(loss_pct)))}
    sys.stdout.write("carrying\n")
    sys.stdout.flush()
    # (when it is due, running number, which way out, frame)
    held: list[tuple[float, int, socket.socket, bytes]] = []
    number = 0
    while True:
        wait_s = max(0.0, held[0][0] - time.monotonic()) if held else None
        for side in select.select(list(ways), [], [], wait_s)[0]:
            frame, sender = side.recvfrom(FRAME_BYTES)
            out, lost = ways[side]
            if sender[2] == socket.PACKET_OUTGOING:
                continue
            delay_s = int(delay_ms) / 1000
            if _is_arp(frame):  # a far host lies behind a router, which is near
                delay_s = 0.0
            elif next(lost):
                continue
            number += 1
            heapq.heappush(held, (time.monotonic() + delay_s, number, out, frame))
        while held and held[0][0] <= time.monotonic():
            _, _, out, frame = heapq.heappop(held)
            _send(out, frame)


def losses(loss_pct: int) -> Iterator[bool]:
    """For each frame in turn, whether it is lost. loss_pct: 0 to 100."""
    due = 0
    while True:
        due += loss_pct
        yield due >= 100
        due %= 100


def _is_arp(frame: bytes) -> bool:
    return frame[VNET_HEADER + 12 : VNET_HEADER + 14] == ARP


def _open(interface: str) -> socket.socket:
    side = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    side.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    side.bind((interface, ETH_P_ALL))
    return side


def _send(out: socket.socket, frame: bytes) -> None:
    with contextlib.suppress(OSError):  # its link is down: so are frames lost on a real one
        out.send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
