"""What serves the command line alone.

main        the commands, and what each takes
files       from file to file, slab by slab
npy         .npy files as they are read and begun
replacing   files that are replaced whole or not at all, and stay as private as they were
demo        examples and times
units       sizes as people read and write them
errors      an error as one line
"""
