"""What runs in this process: runs, workflows, and the approvals that they wait for."""
