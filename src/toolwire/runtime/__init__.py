"""This machine: guarded files, processes, threads, isolation and the state directory."""
