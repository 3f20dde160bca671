"""Training steps as people publish them: models with their losses, masks, optimizers and habits."""
