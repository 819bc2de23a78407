"""HTTP: dependencies and error responses of all routes, middleware, templates, and languages.

Main types: `Transaction`, `ServingConnection`, `FormFields` and `Now` (dependencies of routes), `Problem` (a refusal as
JSON), `SecurityHeaders` and `BodyLimits` (middleware), `Message` (a translatable sentence).

Open `dependencies.py` first, then `templating.py`, `middleware.py` and `languages/`.
"""
