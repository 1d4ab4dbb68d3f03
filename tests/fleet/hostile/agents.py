"""Made-up agents: shell where they behave, for that costs little; Python where they must misbehave with care."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.documents import card, report, states, user
from tests.fleet.ssh.sshd import write_agent

ACTIVE_S, HELD_S = 3600.0, 1800.0


def document(name: str) -> dict[str, object]:
    """One host's report: one card, an hour active, half an hour held."""
    spent = states(ACTIVE_S, HELD_S, 600)
    return report([card(f"GPU-{name}", spent)], [user("alice", states(ACTIVE_S, HELD_S))], store_id=name)


def healthy_agent(folder: Path, name: str, before: str = "", after: str = "") -> Path:
    """An agent that answers with `document(name)`. before, after: shell commands around the frame."""
    body = json.dumps(document(name))
    digest = hashlib.sha256(body.encode()).hexdigest()
    agent = folder / f"agent-{name}"
    agent.write_text(
        f"#!/bin/sh\nfor nonce; do :; done\n{before}\n"
        f'echo "gua-frame-begin $nonce"\ncat <<"END"\n{body}\nEND\n'
        f'echo "gua-frame-end $nonce {len(body)} {digest}"\n{after}\n'
    )
    agent.chmod(0o755)
    return agent


# What sick agents do, in Python: see `write_agent`.
SICK = {
    "agent-old": "answer(schema='gua.report/0', host={'agent_version': '0.0.9'})",
    "agent-crashes": "raise ValueError('inside')",
    "torn-frame": "sys.stdout.write(frame({'schema': 'gua.report/1', 'fill': 'x' * 1000})[:-80])",
    "endless-output": "for _ in range(1600): sys.stdout.write('y' * 65536)",
    "latin-1-inside": (
        'import hashlib\nbody = b\'{"schema": "gua.report/1", "name": "caf\\xe9"}\'\n'
        "head, tail = f'gua-frame-begin {nonce}\\n', f'\\ngua-frame-end {nonce} {len(body)} '\n"
        "sys.stdout.buffer.write(head.encode() + body + (tail + hashlib.sha256(body).hexdigest() + '\\n').encode())"
    ),
    "agent-killed": "sys.stdout.write(frame({})[:20]); sys.stdout.flush(); os.kill(os.getpid(), 9)",
    "sshd-killed": """
sys.stdout.write(frame({"schema": "gua.report/1"})[:40]); sys.stdout.flush()
parent = os.getppid()
while parent > 1:
    name = open(f"/proc/{parent}/comm").read().strip()
    if name.startswith("sshd"):  # the session's own, which is the parent of the shell that runs `timeout`
        os.kill(parent, 9)
        break
    parent = int(open(f"/proc/{parent}/stat").read().rpartition(")")[2].split()[1])
time.sleep(600)
""",
}


def sick_agent(folder: Path, name: str) -> Path:
    return write_agent(folder / f"agent-{name}", SICK[name])
