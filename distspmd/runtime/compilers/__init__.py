"""The compilers of a machine: how they are found and run, and what their failures say."""
