"""`python -m app.cli` is `easel`."""

from app.cli import main

if __name__ == "__main__":  # a worker of the server imports this too
    main()
