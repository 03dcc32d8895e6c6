package supply.run

import java.nio.file.{Files, Path}

import org.scalatest.Suite

import supply.plan.{Groups, Hostfile, Shuffle, Uneven}
import supply.source.Source
import supply.task.{SupplySettings, TaskReport}
import supply.testing.{Background, LocalSpark, TemporaryFolder, TestRank}

/** Whole runs inside this JVM with real ranks. */
trait RunsWithRanks extends LocalSpark { this: Suite =>
  import Background.{inBackground, result}

  /** Runs ranks and job together: what each rank has seen (`take`), and the result of the job. */
  protected def supply(
      ranks: Int, epochs: Int = 1, seed: Long = 0, blockElements: Option[Int] = Some(3),
      timeout: Double = 20,
      resident: Boolean = false, ringBytes: Long = 8192, blockBytes: Long = 4096,
      shuffle: Shuffle = Shuffle.Partitions,
      uneven: Uneven = Uneven.Keep, position: Option[String] = None,
      resumePositions: Option[String] = None,
      exchange: Boolean = false,
      more: SupplySettings => SupplySettings = identity,
      take: TestRank => Seq[String] = _.drain())(
      source: => Source): (Seq[Seq[String]], Either[Throwable, Seq[TaskReport]]) =
    TemporaryFolder { folder =>
      val configFiles = TestRank.configFiles(folder, ranks)
      val processes = configFiles.read().map(new TestRank(_))
      try {
        val share = more(SupplySettings(ranks, "", "")).sharing
        for (group <- Groups(Hostfile.oneNode(ranks), share).ranks if group.size > 1; i <- group)
          processes(i).reader(i - group.head, group.size, processes(group.head).paths.mappedFile)
        processes.zipWithIndex.foreach { case (rank, i) =>
          assert(rank.open(ringBytes, blockBytes, rank = i, timeout = timeout,
            position = position, exchange = exchange) == "OK")
        }
        val taking = processes.map(rank => inBackground(take(rank)))
        val settings = SupplySettings(
          ranks = ranks,
          mappedFiles = configFiles.mappedFiles,
          namedPipes = configFiles.namedPipes,
          epochs = epochs,
          seed = seed,
          blockElements = blockElements,
          timeout = timeout,
          resident = resident,
          shuffle = shuffle,
          uneven = uneven,
          resumePositions = resumePositions)
        val outcome =
          try Right(SupplyJob.run(sc, more(settings))(source))
          catch { case e: Exception => Left(e) }
        (taking.map(result(_)), outcome)
      } finally {
        processes.foreach(_.close())
        assert(leftovers(folder) == Seq.empty)
      }
    }

  private def leftovers(folder: Path): Seq[String] = {
    val names = folder.toFile.list().toSeq.filter(_.startsWith("pair-"))
    names.foreach(name => Files.delete(folder.resolve(name)))
    names
  }
}
