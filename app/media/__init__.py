"""Files that items refer to: images, recordings and videos.

Researchers upload them as a zip. `media_zip.py` unpacks it piece by piece (`MediaZip`, `UnpackedPiece`),
`match_file_names.py` matches its paths with the names in the table, and `content_types.py` detects what each file is.
`media_store.py` keeps the bytes in the database (`StoredFile`), `media_problems.py` explains why an item cannot show
a file, `pages.py` sends files to browsers, and `render_items.py` renders the items of a HIT with them.

Open `media_store.py` first.
"""
