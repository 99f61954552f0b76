"""The derivative by autodiff of forward's body beside the claim, and which of the two differences support."""
