"""Column and numbers of gold items that are made from known answers."""

DEFAULT_KNOWN_ANSWER_COLUMN = "truth"
MIN_GOLD_ITEMS = 10  # recommended: fewer are recognised, and met too rarely to find anybody
MAX_GOLD_ITEMS_AT_ONCE = 1_000
