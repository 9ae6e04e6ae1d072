"""Where designs are evaluated: threads, processes, Dask, Ray; `dispatch` shares a batch among them."""
