"""What proposes designs beside the network: variations of good designs, and refinement of their values."""
