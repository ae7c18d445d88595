"""From pairs of demonstrations to a trained agent in a folder."""
