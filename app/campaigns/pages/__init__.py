"""Researchers' pages about campaigns: settings, life cycle and a preview of HITs."""
