"""Open link: every visitor who presses Start becomes an annotator, whom a signed token identifies from then on."""

from app.annotation.platforms.platform import Platform, build_completion_by_code_or_url

PLATFORM = Platform(
    "link", "Link", build_completion=build_completion_by_code_or_url, has_start_button=True, people_from="link"
)
