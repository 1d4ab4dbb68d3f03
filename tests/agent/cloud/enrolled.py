"""What the tests of the cloud share."""

from __future__ import annotations

import json
import os
from pathlib import Path

AGENT_TOKEN = "gua_agent_Zx81pQw7TnV3kLs9"
ONE_TIME = "gua_enroll_Jh42mBd6RfY8cXa1"


def write_enrolment(path: Path, server_url: str, mode: int = 0o600, **more: str) -> Path:
    """A `cloud.json` as an agent writes it."""
    fields = {"serverUrl": server_url, "hostId": "host-1", "displayName": "node-1", "tokenPrefix": "gua_agent"}
    path.write_text(json.dumps({**fields, "agentToken": AGENT_TOKEN, **more}))
    os.chmod(path, mode)
    return path
