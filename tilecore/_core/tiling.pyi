def note_main_thread() -> None:
    """In a forked child the thread that has forked is the main one."""
