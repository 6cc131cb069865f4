"""What `uncuda check` adds to a conversion: which findings count, and how they are shown."""
