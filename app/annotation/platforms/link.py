"""Open link: every visitor who presses Start becomes an annotator, whom a signed token identifies from then on."""

from app.annotation.platforms.platform import Platform, complete_by_code_or_url

PLATFORM = Platform("link", "Link", build_completion=complete_by_code_or_url, has_start_button=True)
