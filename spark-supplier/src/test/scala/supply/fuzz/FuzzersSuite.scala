package supply.fuzz

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import supply.lmdb.DatumFuzzer
import supply.linalg.AnswerFuzzer
import supply.pair.PairFilesFuzzer
import supply.results.ResultFileFuzzer
import supply.run.TextsFuzzer

/** The fuzzers with inputs from their corpora, each damaged in one place: `make fuzz` has more. */
class FuzzersSuite extends AnyFunSuite {
  private def files(folder: String): Seq[Array[Byte]] = {
    val listed = Files.list(Paths.get(folder))
    try listed.iterator.asScala.toSeq.sorted.map(Files.readAllBytes(_: Path))
    finally listed.close()
  }

  for ((name, corpus, fuzz) <- Seq[(String, String, Array[Byte] => Unit)](
      ("result files", "../proto/golden", ResultFileFuzzer.fuzzerTestOneInput),
      ("pair files", "../proto/golden", PairFilesFuzzer.fuzzerTestOneInput),
      ("answers", "src/test/fuzz/answers", AnswerFuzzer.fuzzerTestOneInput),
      ("texts", "src/test/fuzz/texts", TextsFuzzer.fuzzerTestOneInput),
      ("Datums", "src/test/fuzz/datums", DatumFuzzer.fuzzerTestOneInput)))
    test(s"$name: whole and damaged inputs are read or refused") {
      val random = new Random(11)
      val whole = files(corpus)
      whole.foreach(fuzz)
      for (input <- whole; _ <- 0 until 500 / whole.size) {
        val damaged = input.clone()
        damaged(random.nextInt(damaged.length)) = random.nextInt(256).toByte
        fuzz(damaged)
      }
    }
}
