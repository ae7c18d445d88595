"""The paper's tables: its figures, and ours beside them."""
