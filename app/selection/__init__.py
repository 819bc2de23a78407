"""What to ask next: pure, arrays and small sets in, item numbers out."""
