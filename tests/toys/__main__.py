"""The command `easel` with the toys."""

from tests.toys import register

if __name__ == "__main__":
    register()  # before the command is read
    from app.cli import main

    main()
