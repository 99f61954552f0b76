"""The functions behind the layers, by kind; programs call them by `nn.functional`."""
