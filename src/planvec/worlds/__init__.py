"""Worlds: environments with skills, experts and success tests; those that come with planvec, each in its folder."""

from planvec.worlds.registry import Registration, make, register, registrations

__all__ = ["Registration", "make", "register", "registrations"]
