"""uncuda: turns CUDA-only PyTorch code into code whose device is chosen at run time by ``AI_DEVICE``."""

__version__ = "0.1.0"
