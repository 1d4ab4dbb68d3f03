"""The metrics by name: a contract. The text format and the table in the documentation come from here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One gauge. labels: besides those, none ever. per_user: only where people's names were asked for.

    fresh: absent as long as the newest tick is too old to tell of now.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    per_user: bool = False
    fresh: bool = False


BUILD = Metric("gua_build_info", "Version of the agent; always 1.", ("version",))
RUNNING = Metric("gua_daemon_running", "Whether a daemon samples here (1), by the age of its last tick, or not (0).")
PAUSED = Metric("gua_paused", "Whether sampling is paused on purpose (1) or not (0).")
INTERVAL = Metric("gua_interval_seconds", "Time between two ticks of the daemon.")
TICK_AT = Metric("gua_last_tick_timestamp_seconds", "When the newest tick was stored, Unix time.")
TICK_AGE = Metric("gua_last_tick_age_seconds", "How old the newest tick was when this was written.")
TICK_STATUS = Metric("gua_last_tick_status", "1 for the status of the daemon's newest tick, else 0.", ("status",))
BOARD_ACCEPTED_AT = Metric(
    "gua_board_last_accepted_timestamp_seconds",
    "When the board last took a state, to the minute, Unix time; absent where that is not known.",
)
BOARD_FAILING = Metric(
    "gua_board_failing_since_timestamp_seconds",
    "Since when every push to the board fails, Unix time; absent while none does.",
)
CARDS = Metric("gua_cards", "Cards in service, also those that cannot be reached.")

CARD = Metric("gua_card_info", "What a card is; always 1.", ("uuid", "index", "name", "mig_profile", "mig_parent_uuid"))
STATE = Metric("gua_card_state", "1 for the state of a card by the newest tick, else 0.", ("uuid", "state"), fresh=True)
REASON = Metric("gua_card_unknown_reason", "Why the state of a card is unknown; 1.", ("uuid", "reason"), fresh=True)
STATE_SINCE = Metric(
    "gua_card_state_since_timestamp_seconds", "Since when a card is in its state, Unix time.", ("uuid",), fresh=True
)
UTILIZATION = Metric(
    "gua_card_utilization_ratio", "Utilisation of a card, 0 to 1; absent where unknown.", ("uuid",), fresh=True
)
MEMORY_USED = Metric(
    "gua_card_memory_used_bytes",
    "Memory in use, without the driver's own; absent where unknown.",
    ("uuid",),
    fresh=True,
)
MEMORY_TOTAL = Metric("gua_card_memory_total_bytes", "Memory of a card; absent where unknown.", ("uuid",))
POWER = Metric("gua_card_power_watts", "Power of a card; absent where unknown.", ("uuid",), fresh=True)
TEMPERATURE = Metric(
    "gua_card_temperature_celsius", "Temperature of a card; absent where unknown.", ("uuid",), fresh=True
)
HOLDERS = Metric("gua_card_users", "Users whose compute processes hold a card.", ("uuid",), fresh=True)

TODAY_SINCE = Metric("gua_today_start_timestamp_seconds", "When today began, in this host's zone, Unix time.")
TODAY_STATE = Metric("gua_today_card_seconds", "Today's time of a card by state.", ("uuid", "state"))
TODAY_UNOBSERVED = Metric(
    "gua_today_unobserved_card_seconds", "Today's time of a card in which nobody looked.", ("uuid",)
)
TODAY_ENERGY = Metric(
    "gua_today_energy_joules", "Today's energy of a card by state; absent where unknown.", ("uuid", "state")
)
TODAY_TICKS = Metric("gua_today_ticks", "Today's ticks by status.", ("status",))

USER_CARDS = Metric(
    "gua_user_cards", "Cards that a user holds, by the cards' state.", ("user", "state"), per_user=True, fresh=True
)
USER_TODAY = Metric(
    "gua_today_user_card_seconds", "Today's whole time of the cards a user held.", ("user",), per_user=True
)
USER_SHARE = Metric(
    "gua_today_user_share_seconds", "The same, divided by the users of a card; adds up.", ("user",), per_user=True
)
USER_IDLE = Metric(
    "gua_today_user_idle_held_card_seconds", "Of it, what the cards were idle-held.", ("user",), per_user=True
)

METRICS: tuple[Metric, ...] = (
    *(BUILD, RUNNING, PAUSED, INTERVAL, TICK_AT, TICK_AGE, TICK_STATUS, BOARD_ACCEPTED_AT, BOARD_FAILING, CARDS),
    *(CARD, STATE, REASON, STATE_SINCE, UTILIZATION, MEMORY_USED, MEMORY_TOTAL, POWER, TEMPERATURE, HOLDERS),
    *(TODAY_SINCE, TODAY_STATE, TODAY_UNOBSERVED, TODAY_ENERGY, TODAY_TICKS),
    *(USER_CARDS, USER_TODAY, USER_SHARE, USER_IDLE),
)
