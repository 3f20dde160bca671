"""Python during a run: host functions, calls of libraries, and functions that these call back."""
