"""What algorithms are made of: each module one idea, pure functions, used by several of them."""
