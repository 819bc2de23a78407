# The app runs from the tree it was copied as: templates, static files, migrations and docs are beside app/.
FROM python:3.13-slim AS build
WORKDIR /srv/easel
ENV UV_LINK_MODE=copy UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
COPY pyproject.toml requirements.lock ./
# uv itself comes from the lock too; then the locked versions of what the app needs, and no development tools.
RUN awk '/^uv==/,!/\\$/' requirements.lock > /tmp/uv.txt \
    && pip install --no-cache-dir --require-hashes --only-binary :all: -r /tmp/uv.txt \
    && uv venv --python "$(command -v python)" .venv \
    && uv pip install --require-hashes --only-binary :all: -r pyproject.toml -c requirements.lock
COPY LICENSE .mkdocs.yml ./
COPY app app
RUN uv pip install --no-deps --build-constraints requirements.lock -e .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /var/lib/easel easel \
    && install -d -o easel -g easel -m 0700 /var/lib/easel
WORKDIR /srv/easel
COPY --from=build /srv/easel/.venv .venv
COPY . .
ENV PATH=/srv/easel/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    EASEL_HOST=0.0.0.0 \
    EASEL_PORT=8000 \
    EASEL_DATA_DIR=/var/lib/easel
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
CMD ["easel", "serve"]
