"""In-memory elements of a size: images of the shape that usually has it."""

_SHAPES = {784: (1, 28, 28), 3 << 10: (3, 32, 32), 192 << 10: (3, 256, 256), 1 << 20: (1, 1024, 1024)}


def generate(spark, element_bytes, total_bytes, partitions, storage_level="MEMORY_ONLY", batches=True):
    """Makes them Spark's open source, persisted as by the Supplier or else as tuples; returns what it holds."""
    channels, height, width = _SHAPES.get(element_bytes, (1, 1, element_bytes))
    return spark.run(
        "generate",
        channels=channels,
        height=height,
        width=width,
        total_bytes=total_bytes,
        partitions=partitions,
        batches=batches,
        storage_level=storage_level,
    )
