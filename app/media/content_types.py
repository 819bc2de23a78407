"""Content type of a file, detected from its first bytes: a name can claim anything.

Only types that browsers show and play without running them.
"""

OGG_HEAD_BYTES = 64
RIFF_WAVE, RIFF_WEBP = b"WAVE", b"WEBP"
CONTENT_TYPE_BY_BRAND = {b"avif": "image/avif", b"avis": "image/avif", b"M4A ": "audio/mp4", b"M4B ": "audio/mp4"}
MP4_VIDEO_BRANDS = (
    b"isom",
    b"iso2",
    b"iso4",
    b"iso5",
    b"iso6",
    b"mp41",
    b"mp42",
    b"avc1",
    b"dash",
    b"M4V ",
    b"mmp4",
    b"MSNV",
)
CONTENT_TYPE_BY_SIGNATURE = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"ID3": "audio/mpeg",
    b"fLaC": "audio/flac",
    b"\x1aE\xdf\xa3": "video/webm",  # also for audio alone
}
# Content types that can be shown as each kind; video containers may hold audio alone.
CONTENT_TYPE_PREFIXES_BY_KIND = {
    "image": ("image/",),
    "audio": ("audio/", "video/webm", "video/mp4"),
    "video": ("video/",),
}


def detect_content_type_or_none(first_bytes: bytes) -> str | None:
    """Return the type of a file with these first bytes; None if it is no image, audio or video.

    An SVG is none of them: it is a page that can hold scripts.
    """
    for signature, known_type in CONTENT_TYPE_BY_SIGNATURE.items():
        if first_bytes.startswith(signature):
            return known_type
    if first_bytes[:4] == b"RIFF":
        return {RIFF_WAVE: "audio/wav", RIFF_WEBP: "image/webp"}.get(first_bytes[8:12])
    if first_bytes[:4] == b"OggS":
        return "video/ogg" if b"theora" in first_bytes[:OGG_HEAD_BYTES] else "audio/ogg"
    if first_bytes[4:8] == b"ftyp":
        return CONTENT_TYPE_BY_BRAND.get(first_bytes[8:12]) or (
            "video/mp4" if first_bytes[8:12] in MP4_VIDEO_BRANDS else None
        )
    return "audio/mpeg" if is_mp3_frame(first_bytes[:3]) else None


def is_mp3_frame(first_bytes: bytes) -> bool:
    """Return whether the bytes begin an MPEG audio frame of layer III: its sync, then no reserved rates."""
    if len(first_bytes) < 3 or first_bytes[0] != 0xFF or first_bytes[1] & 0xE6 != 0xE2:
        return False
    return first_bytes[2] & 0xF0 not in (0x00, 0xF0) and first_bytes[2] & 0x0C != 0x0C


def can_be_shown_as_media_kind(kind: str, content_type: str) -> bool:
    """Return whether a file of this type can be shown as an image, a recording or a video."""
    return content_type.startswith(CONTENT_TYPE_PREFIXES_BY_KIND[kind])
