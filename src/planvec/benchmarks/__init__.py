"""Speed, measured side by side in one run: `planvec bench`."""
