"""Every benchmark, one after another: `python -m benchmarks`."""

from benchmarks import selection, serving

if __name__ == "__main__":
    selection.main()
    print()
    serving.main()
