"""Transform: the recipe's `preprocessing_fn`, analyzed over the training rows and applied to all of them."""
