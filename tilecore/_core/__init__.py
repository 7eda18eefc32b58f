"""The compiled engine: request -> plan -> write, and the memory and threads that these use."""
