"""Decision trees that act in Gymnasium environments: episodes, races, the choice and the test of a tree."""
