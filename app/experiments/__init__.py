"""Experiments of the papers: on made-up annotators, and with people."""
