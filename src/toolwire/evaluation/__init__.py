"""Evaluation of models: which model, asked in which format and read in which way, makes the right calls."""
