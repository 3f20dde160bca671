"""Programs that DaCe's own transformations have changed, lowered and run beside NumPy."""
