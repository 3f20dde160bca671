"""PyTorch modules and training steps, traced as they stand.

Imports all of `distspmd` but the command line; `operators` and `tensor_ir`.
"""
