# Spark, and the programs of the Supplier's jar in it. Sourced by supplier, submit-supplier and supply-doctor, with root set.

# find_spark: sets SPARK_HOME where it is not set, and jar to the one that is built for this Spark, or else to the usual one,
# which says what to do. Fails where there is no Spark or no jar, and sets REPLY to what to do.
find_spark() {
    local core line
    [[ -n ${SPARK_HOME-} ]] || SPARK_HOME=$(echo "$root"/build/venv/lib/python3*/site-packages/pyspark)
    REPLY="no Spark in $SPARK_HOME: run 'make build', or set SPARK_HOME"
    [[ -x $SPARK_HOME/bin/spark-submit ]] || return 1
    core=$(cd "$SPARK_HOME/jars" 2> /dev/null && echo spark-core_*-*.jar)
    line=$(sed -n 's/^spark-core_[0-9.]*-\([0-9]*\.[0-9]*\)\..*/\1/p' <<< "$core")
    jar=$root/build/spark-$line/target/spark-supplier.jar
    [[ -f $jar ]] || jar=$root/spark-supplier/target/spark-supplier.jar
    REPLY="no $jar: run 'make build'"
    [[ -f $jar ]]
}

# submit CLASS MASTER [OPTION]... JAR [ARGUMENT]...: this process becomes the program.
submit() {
    local temporary=${TMPDIR:-/tmp}
    export SPARK_HOME
    export SPARK_LOCAL_DIRS=${SPARK_LOCAL_DIRS:-$temporary}
    export SPARK_CONF_DIR=${SPARK_CONF_DIR:-$root/configs/spark}
    # Without it every JVM leaves a folder in /tmp.
    export SPARK_LAUNCHER_OPTS=-XX:-UsePerfData
    # A local Spark has nobody to talk to outside.
    [[ $2 != local* ]] || export SPARK_LOCAL_IP=127.0.0.1
    exec "$SPARK_HOME/bin/spark-submit" --class "$1" --master "$2" \
        --conf spark.driver.defaultJavaOptions="-XX:-UsePerfData -Djava.io.tmpdir=$temporary" "${@:3}"
}
