"""Easel: a web server for crowdsourced scalar annotation."""
