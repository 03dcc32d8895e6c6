"""The soak: scenarios in turn, with faults at random (`make soak`)."""
