"""What the backends with PyTorch's API share (PyTorch and the embedded engine), and the backend of the engine."""
