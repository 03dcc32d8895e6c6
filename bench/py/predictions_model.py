"""The model of bench/predictions: a linear one with numpy, for ranks and for Spark's Python functions."""

KEY, SCORE = "id", "score"
FEATURES = [f"x{number}" for number in range(8)]
# Small integers: then sums of scores do not depend on their order.
WEIGHTS = [3.0, -1.0, 2.0, 5.0, -4.0, 1.0, -2.0, 6.0]
SCHEMA = f"{KEY} long not null, {SCORE} float"
# As large as Spark's Arrow batches.
BATCH = 10_000


def score(features):
    """features: an array for each. Returns an array of float32."""
    total = features[0] * WEIGHTS[0]
    for weight, values in zip(WEIGHTS[1:], features[1:]):
        total += weight * values
    return total


def predict_on_rank(data):
    """For Supplier.run()."""
    with data.results() as out:
        for batch in data:
            columns = {name: tensor.numpy() for name, tensor in batch.items()}
            out.write({KEY: columns[KEY], SCORE: score([columns[name] for name in FEATURES])})
            del batch, columns  # A view would keep the block from Spark.


def predict_frames(frames):
    """For DataFrame.mapInPandas()."""
    import pandas

    for frame in frames:
        scores = score([frame[name].to_numpy() for name in FEATURES])
        yield pandas.DataFrame({KEY: frame[KEY], SCORE: scores})


def predict_series(*features):
    """For pandas_udf()."""
    import pandas

    return pandas.Series(score([series.to_numpy() for series in features]))


def predict_arrow(batches):
    """For DataFrame.mapInArrow()."""
    import pyarrow

    for batch in batches:
        scores = score([batch.column(name).to_numpy() for name in FEATURES])
        yield pyarrow.record_batch([batch.column(KEY), pyarrow.array(scores)], names=[KEY, SCORE])


# The same for Spark's own expressions.
EXPRESSION = " + ".join(f"{weight}F * {name}" for weight, name in zip(WEIGHTS, FEATURES))
