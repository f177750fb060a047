"""Each of Aeon's widgets on a recorded run: `./dev widget plan_tree`."""
