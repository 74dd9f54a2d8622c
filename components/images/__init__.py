"""Images as features: their pixels, and a network for them."""
