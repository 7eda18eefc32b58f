"""The compiled engine: arguments -> plan -> execute -> results, and the memory they use."""
