"""Languages of annotators' pages: the catalogues (`LANGUAGE.po`), language negotiation, and translation.

Main type: `Message` (a translatable sentence, with its values). Refusals are translated by their code.

Open `catalogue.py` first, then `templates.py` (messages in templates) and `refusals.py`. `make words` updates the
catalogues.
"""
