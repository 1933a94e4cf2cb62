"""FlashInfer Trace: the formats (`formats`), the files of a data set (`dataset`), and definitions as problem files."""
