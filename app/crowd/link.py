"""A plain link: whoever opens it and presses Start is an annotator. Then the signed token says who they are."""

from app.crowd.platform import Platform, by_code_or_address

PLATFORM = Platform("link", "Link", complete=by_code_or_address, starts_here=True)
