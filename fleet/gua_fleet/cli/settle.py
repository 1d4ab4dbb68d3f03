"""Puts the settings in force under the options: flag, then environment, then gua-fleet.yml, then default."""

from __future__ import annotations

import argparse

from gua_fleet.config import KEYS, load_config
from gua_fleet.inventory.source import named_source

# A list of inventories is no default like others: who named it decides what is said and where paths count from.
_NOT_FILLED = {"hosts", "vault_password_file"}


def settle_options(options: argparse.Namespace) -> None:
    """Fill in every option that has the name of a setting and was not given; the settings become `options.config`.

    An option takes part when its default is None. Commands without `--config` are left alone. Raises ConfigError.
    """
    if "config_file" not in options:
        return
    named = named_source(getattr(options, "hosts", None) or ())
    options.config = load_config(options.config_file, named.folders if named else ())
    for key in KEYS:
        if key.name not in _NOT_FILLED and getattr(options, key.name, "") is None:
            setattr(options, key.name, options.config[key.name])
