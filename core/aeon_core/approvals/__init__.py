"""What a person is asked, and how the answer reaches the run."""
