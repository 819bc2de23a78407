"""A plain link: whoever opens it and presses Start is an annotator. Then the signed token says who they are."""

from app.annotation.platforms.platform import Platform, complete_by_code_or_url

PLATFORM = Platform("link", "Link", build_completion=complete_by_code_or_url, has_start_button=True)
