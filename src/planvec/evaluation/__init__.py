"""Agents acting: the episode loop, the judge, scores."""
