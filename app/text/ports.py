"""Port numbers in addresses."""

# A regular expression for a port from 1 to 65535.
PORT_PATTERN = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])(?![0-9])"
