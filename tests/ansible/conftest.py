"""The role is for controllers; their libraries need Python 3.10."""

import sys

collect_ignore_glob = ["test_*.py"] if sys.version_info < (3, 10) else []
