"""``python -m codemods``, the same as ``uncuda``."""

from codemods.cli.main import main

main()
