"""Many runs at once, each with its own journal (contract: `batch`)."""
