"""`python -m gua` is the `gua` command."""

from gua.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
