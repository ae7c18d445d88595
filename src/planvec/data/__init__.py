"""Demonstrations: in memory, in files, in pairs on the accelerator."""
