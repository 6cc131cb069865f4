"""What the rules are, as data: the catalogue, the device table, the torch.cuda table, the CUDA-only packages."""
