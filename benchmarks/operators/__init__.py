"""gradcli on PyTorch's own operator database."""
