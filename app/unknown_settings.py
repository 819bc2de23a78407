"""Environment variables that look like settings but that nothing reads, such as misspelled ones."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from app.settings import (
    SECRET_SETTINGS,
    SERVICE_TOKEN_PREFIX,
    Settings,
    environment_variable_name,
    secret_file_variable_name,
)

COMPOSE_VARIABLES = frozenset({"EASEL_PUBLISH", "EASEL_MEMORY"})  # which docker-compose.yml alone reads


def iterate_unknown_setting_sentences(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence about each variable that begins with EASEL_ but is no setting."""
    known = {environment_variable_name(field) for field in Settings.model_fields}
    known |= {secret_file_variable_name(field) for field in SECRET_SETTINGS} | COMPOSE_VARIABLES
    for name in sorted(environment.keys() - known):
        if name.startswith("EASEL_") and not name.startswith(SERVICE_TOKEN_PREFIX):
            similar = get_close_matches(name, known, n=1, cutoff=0.8)
            yield f"{name} is not a setting and has no effect." + (f" Did you mean {similar[0]}?" if similar else "")
