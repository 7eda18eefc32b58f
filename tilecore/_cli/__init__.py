"""The command line.

main     the commands, their arguments, errors and signals
files    from one file to another, slab by slab
npy      .npy files: mapping them, and their headers
output   a file that appears whole or not at all, or standard output
demo     examples, and two times
units    sizes for people to read
"""
