"""XGBoost. matrix() makes a QuantileDMatrix of one epoch. collective() joins the ranks for one model.

A null is an error, unless nulls={"features": float("nan")} makes it a missing value.
"""

import spark_supplier.xgboost
import xgboost
from pyspark.sql import SparkSession
from spark_supplier import Rows, Supplier, session


def train(data):
    with spark_supplier.xgboost.collective():
        rows = spark_supplier.xgboost.matrix(data, "features", "label")
        model = xgboost.train({"max_depth": 4, "eta": 0.3}, rows, num_boost_round=50)
    return model.save_raw(), rows.num_row()


spark = session(SparkSession.builder.master("local[3]"))
rows = spark.range(0, 1000, 1, 8).selectExpr("array(float(rand(1)), float(rand(2)), float(rand(3))) as features")
df = rows.selectExpr("features", "float(features[0] + 2 * features[1]) as label")
rows = Rows(df, columns=["features", "label"], batch_size=1024, uneven="keep")  # each row once
model, count = Supplier(ranks=2).run(train, rows)
prediction = xgboost.Booster(model_file=model).inplace_predict([[0.5, 0.25, 0.5]])[0]
print(f"{count} rows on rank 0, prediction {prediction:.2f}")
