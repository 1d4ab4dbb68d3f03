"""gua_fleet: asks the agents of a whole inventory over SSH and merges their answers into one report."""
