"""The paper's tables and figures, redone; `discodso reproduce NAME`."""
