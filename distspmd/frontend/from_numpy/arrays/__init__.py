"""Tensors as functions from indices to expressions: their types, shapes, indices and lengths."""
