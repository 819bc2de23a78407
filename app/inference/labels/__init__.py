"""Which class items belong to, and how annotators confuse classes."""
