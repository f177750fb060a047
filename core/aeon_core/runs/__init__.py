"""A run from outside: started, resumed, forked, replayed, or many of them as a batch."""
