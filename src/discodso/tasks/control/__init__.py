"""Decision-tree policies for Gymnasium environments."""
