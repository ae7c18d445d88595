"""Files written whole or not at all, arrays and JSON in them, and where they come from."""
