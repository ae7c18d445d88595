"""Pictures and films for people."""
