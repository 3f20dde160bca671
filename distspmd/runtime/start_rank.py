"""Starts a script as ``python -m mpi4py`` does, but looks for modules beside the script alone.

That command would look where it was started, too, before mpi4py is found; and in a folder that all
may write anybody may have put a module there.
"""

if __name__ == "__main__":
    import sys

    sys.path[0] = sys.argv[1].rpartition("/")[0] or "."
    from mpi4py.run import main

    main()
