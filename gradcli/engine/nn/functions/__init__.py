"""The functions behind the layers, by kind; programs reach them as `nn.functional`."""
