"""Measures of how far annotators agree with each other, and with themselves."""
