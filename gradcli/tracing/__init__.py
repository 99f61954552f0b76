"""One forward and one backward pass run and recorded, without changing what happens in them."""
