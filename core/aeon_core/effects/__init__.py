"""The port between the kernel and everything nondeterministic (Decision 2).

`port.Effects` writes the intent, acts, and writes the outcome; `replay_cursor` plays a recording back.
"""
