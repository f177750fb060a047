"""The command line (contract: Commands); `main` runs one command."""
