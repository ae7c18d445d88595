"""What plans hold, how well they add up, and whether an agent can tell that it is done."""
