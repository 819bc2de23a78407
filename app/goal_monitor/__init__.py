"""Campaigns that stop by themselves when their goal is reached."""
