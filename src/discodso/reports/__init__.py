"""Reports: what is in run folders, as a page, live, and compared."""
