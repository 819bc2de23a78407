"""What a file is, by how it begins: a name can claim anything. Only what browsers show and play without running it."""

MOST_LOOKED_AT = 64  # bytes
WAVE, WEBP = b"WAVE", b"WEBP"
BRANDS = {b"avif": "image/avif", b"avis": "image/avif", b"M4A ": "audio/mp4", b"M4B ": "audio/mp4"}
MOVIES = (b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"dash", b"M4V ", b"mmp4", b"MSNV")
STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"ID3": "audio/mpeg",
    b"fLaC": "audio/flac",
    b"\x1aE\xdf\xa3": "video/webm",  # sound alone, too
}
# What can be drawn as what: containers of video may hold sound alone.
SUITS = {
    "image": ("image/",),
    "audio": ("audio/", "video/webm", "video/mp4"),
    "video": ("video/",),
}


def content_type(start: bytes) -> str | None:
    """The type of a file that begins so; None for all that is neither image, sound nor video.

    An SVG is none of them: it is a page that can hold scripts.
    """
    for signature, found in STARTS.items():
        if start.startswith(signature):
            return found
    if start[:4] == b"RIFF":
        return {WAVE: "audio/wav", WEBP: "image/webp"}.get(start[8:12])
    if start[:4] == b"OggS":
        return "video/ogg" if b"theora" in start[:MOST_LOOKED_AT] else "audio/ogg"
    if start[4:8] == b"ftyp":
        return BRANDS.get(start[8:12]) or ("video/mp4" if start[8:12] in MOVIES else None)
    return "audio/mpeg" if is_frame(start[:3]) else None


def is_frame(head: bytes) -> bool:
    """Whether an MPEG audio frame of layer III begins so: its sync, then no reserved rates."""
    if len(head) < 3 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2:
        return False
    return head[2] & 0xF0 not in (0x00, 0xF0) and head[2] & 0x0C != 0x0C


def suits(kind: str, type_: str) -> bool:
    """Whether a file of this type can be drawn as an image, a recording or a video."""
    return type_.startswith(SUITS[kind])
