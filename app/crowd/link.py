"""A plain link: whoever opens it and presses Start is an annotator. Then the signed token says who they are."""

from app.crowd.platform import Platform

PLATFORM = Platform("link", "Link", starts_here=True)
