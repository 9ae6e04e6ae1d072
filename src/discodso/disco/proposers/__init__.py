"""What proposes designs beside the network: `variation` of good designs, `refinement` of their values.

`proposer` has the protocol; one of one's own is a small class (examples/own_proposer.py).
"""
