"""A language model on this machine: pinned weights, or any GGUF file, run in this process by llama.cpp."""
